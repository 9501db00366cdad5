package examples

// Difference is how an example's pods come to something else than its unit asks for.
type Difference struct {
	// Real is what they come to at most.
	Real string
	// Why, as a part of a sentence.
	Why string
}

// differences are by operator and file. Each must be so each time.
func differences() map[string]Difference {
	return map[string]Difference{}
}

// DifferenceOf an operator's example from its unit, if one is known.
func DifferenceOf(operator, file string) (Difference, bool) {
	difference, known := differences()[operator+" "+file]
	return difference, known
}
