package access

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
)

// IsMissingObject reports whether the API server serves the resource but has no such object.
func IsMissingObject(err error) bool { return apierrors.IsNotFound(err) && !reviews.IsNotServed(err) }

// NotServed adds the name of a resource to a client error that says only that a resource is not served.
type NotServed struct {
	Resource schema.GroupResource
	error
}

func (n *NotServed) Unwrap() error { return n.error }

// WarnOnce warns that answers are computed from the objects, because the controller does not answer. With --watch, a
// command asks repeatedly, so only the first call warns and returns true.
func (c *Cluster) WarnOnce(why error) bool {
	first := !c.warned
	if first {
		c.warned = true
		c.warn("%v; this is what the objects show.", why)
	}
	return first
}

// NoAnswer returns the error if the controller does not answer and the objects cannot be read either.
func (c *Cluster) NoAnswer(why, err error, what string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%[2]w, and you may not %[3]s: %[1]w", err, why, what) // its status is that of err
	}
	return err
}
