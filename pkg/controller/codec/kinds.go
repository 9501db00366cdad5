package codec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	jobkinds "kube-queue.dev/kube-queue/pkg/generated/kinds"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Kinds numbers the kinds of jobs, because the core stores a number for each unit. It is safe for concurrent use.
type Kinds struct {
	mutex   sync.Mutex
	numbers map[kind]scheduler.JobKind
	// names are indexed by the number. 0 is unknown.
	names []string
}

// kind is a kind of job. Two extensions can queue versions of the same kind, and another group can have a kind with the
// same name.
type kind struct{ extension, name string }

// of returns the number of a unit's kind of job. Users can create units with any kind. If there are more kinds than
// numbers, the kind is unknown.
func (k *Kinds) of(ref *schedulingv1alpha1.ConsumerReference) scheduler.JobKind {
	if ref.Kind == "" {
		return 0
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.number(kind{jobkinds.Extension(ref.APIVersion, ref.Kind), ref.Kind})
}

// number returns the number of a kind. The caller must hold the lock. Kinds with an extension are numbered first, so
// that units with other kinds cannot use up their numbers.
func (k *Kinds) number(of kind) scheduler.JobKind {
	if k.numbers == nil {
		k.numbers, k.names = map[kind]scheduler.JobKind{}, []string{""}
		for _, e := range jobkinds.Extensions() {
			k.number(kind{e[0], e[1]})
		}
	}
	if n, known := k.numbers[of]; known {
		return n
	}
	if len(k.names) > math.MaxUint16 {
		return 0
	}
	of.name = strings.Clone(of.name) // it may be part of a large text
	n := scheduler.JobKind(len(k.names))
	k.names, k.numbers[of] = append(k.names, of.name), n
	return n
}

// Off returns why the jobs of disabled extensions are not admitted, from the labels of the Lease of job-extensions.
func (k *Kinds) Off(labels map[string]string) map[scheduler.JobKind]*quota.Refusal {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	off := map[scheduler.JobKind]*quota.Refusal{}
	for _, e := range jobkinds.Extensions() {
		if labels[wellknown.ExtensionLabelPrefix+e[0]] == wellknown.ExtensionOff {
			off[k.number(kind{e[0], e[1]})] = &quota.Refusal{Reason: wellknown.ReasonKindNotQueued, Sentence: fmt.Sprintf(
				"job-extensions does not queue kind %s, so nothing would release the job; an administrator can add %s to its --enabled-extensions or --annotation-extensions", e[1], e[0])}
		}
	}
	return off
}

// Names returns the names by their numbers.
func (k *Kinds) Names() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.names)
}
