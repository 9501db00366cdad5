package examples

// Difference describes an example whose pods differ from the request of its unit, or an example that has pods
// although it cannot be queued.
type Difference struct {
	// Real is the maximum of the pods and their requests.
	Real string
	// Why is the cause, as part of a sentence.
	Why string
}

const (
	// inTurn: no pod ends while examples are compared.
	inTurn = "its replicated jobs run one after the other, so that only the pods of the first exist; the unit requests the sum of all"
	// unheld: it cannot be held, so that the annotation has no effect.
	unheld = "KubeRay rejects its suspension, so that it is not changed and runs immediately"
)

// differences returns the known differences by operator and file. Each must occur in every run.
func differences() map[string]Difference {
	return map[string]Difference{
		"jobset keps/672-serial-job-execution/README.md#1":   {"1 pod, nothing", inTurn},
		"jobset keps/672-serial-job-execution/README.md#2":   {"1 pod, nothing", inTurn},
		"jobset keps/672-serial-job-execution/README.md#4":   {"2 pods, nothing", inTurn},
		"kuberay config/samples/ray-job.deletion-rules.yaml": {"3 pods, cpu 2500m, memory 3272Mi", unheld},
	}
}

// DifferenceOf returns the known difference of an operator's example, if there is one.
func DifferenceOf(operator, file string) (Difference, bool) {
	difference, known := differences()[operator+" "+file]
	return difference, known
}
