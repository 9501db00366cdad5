package examples

// Difference is how an example's pods come to something else than its unit asks for,
// or one that cannot be queued has pods.
type Difference struct {
	// Real is what they come to at most.
	Real string
	// Why, as a part of a sentence.
	Why string
}

const (
	// inTurn: no pod ends while examples are compared.
	inTurn = "its groups wait for each other's end, so only the first is seen; the unit holds the sum of all from the start"
	// unheld: there is no way to hold it, so the annotation does nothing.
	unheld = "KubeRay refuses to suspend it, so it is left as it is and runs at once"
)

// differences are by operator and file. Each must be so each time.
func differences() map[string]Difference {
	return map[string]Difference{
		"jobset keps/672-serial-job-execution/README.md#1":   {"1 pod, nothing", inTurn},
		"jobset keps/672-serial-job-execution/README.md#2":   {"1 pod, nothing", inTurn},
		"jobset keps/672-serial-job-execution/README.md#4":   {"2 pods, nothing", inTurn},
		"kuberay config/samples/ray-job.deletion-rules.yaml": {"3 pods, cpu 2500m, memory 3272Mi", unheld},
	}
}

// DifferenceOf an operator's example from its unit, if one is known.
func DifferenceOf(operator, file string) (Difference, bool) {
	difference, known := differences()[operator+" "+file]
	return difference, known
}
