package examples

// Difference is why an example's pods are not compared with its unit, or come to
// something else.
type Difference struct {
	// Real is what they come to at most; empty where that is not looked at.
	Real string
	// Why, as a part of a sentence.
	Why string
}

// most is how many pods of one example are run, since all of them are made.
const most = 600

// differences are by operator and file. Those that are known must be so each time.
func differences() map[string]Difference {
	return map[string]Difference{}
}

// DifferenceOf an example from its unit, if one is known.
func DifferenceOf(operator string, outcome *Outcome) (Difference, bool) {
	known, differs := differences()[operator+" "+outcome.File]
	if !differs && outcome.Pods() > most {
		return Difference{Why: "not run: too many pods for the simulated cluster"}, true
	}
	return known, differs
}
