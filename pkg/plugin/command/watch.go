package command

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rewatch is the delay before an ended watch is restarted.
const rewatch = time.Second

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func ignoreExpired(err error) error {
	if isExpired(err) {
		return nil
	}
	return err
}
