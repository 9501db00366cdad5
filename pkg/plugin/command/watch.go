package command

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// rewatch is the delay before an ended watch is restarted.
const rewatch = time.Second

// errorOf returns the error that a watch has sent.
func errorOf(object runtime.Object) error { return apierrors.FromObject(object) }

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func ignoreExpired(err error) error {
	if isExpired(err) {
		return nil
	}
	return err
}
