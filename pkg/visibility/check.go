package visibility

import (
	"fmt"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
)

// The API server calls webhooks before it validates an object, so a question can have any content. These are the
// bounds of the CRDs.
const (
	longestName = 253
	longestPath = 4096
	mostPhases  = 10
	mostValues  = 50
)

// Missing is the error of a question about something that does not exist.
type Missing struct{ error }

func checkLength(field, value string, most int) error {
	if len(value) > most {
		return fmt.Errorf("spec.%s has %d bytes, and may have %d", field, len(value), most)
	}
	return nil
}

func checkNumber(field string, values []string, most int) error {
	if len(values) > most {
		return fmt.Errorf("spec.%s has %d entries, and may have %d", field, len(values), most)
	}
	return nil
}

func checkPage(limit, offset int32) error {
	if limit < 0 || limit > visibilityv1alpha1.MaxLimit {
		return fmt.Errorf("spec.limit must be from 0 to %d, not %d", visibilityv1alpha1.MaxLimit, limit)
	}
	if offset < 0 {
		return fmt.Errorf("spec.offset must be 0 or more, not %d", offset)
	}
	return nil
}

func checkQueueSpec(spec *visibilityv1alpha1.QueueReviewSpec) error {
	for _, err := range []error{
		checkLength("queue", spec.Queue, longestName), checkPage(spec.Limit, spec.Offset), checkNumber("phases", spec.Phases, mostPhases),
		checkNumber("reasons", spec.Reasons, mostValues), checkNumber("kinds", spec.Kinds, mostValues),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
