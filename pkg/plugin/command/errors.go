package command

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
)

// explain returns an error as one line that says what to do.
func explain(err error) string {
	var unknown x509.UnknownAuthorityError
	var toServer *url.Error
	switch {
	case reviews.IsRefused(err) != nil:
		return oneLine(err)
	case clientcmd.IsEmptyConfig(err), clientcmd.IsContextNotFound(err), clientcmd.IsConfigurationInvalid(err):
		return fmt.Sprintf("no cluster is selected: %s; see kubectl config get-contexts", oneLine(err))
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept your credentials; log in again"
	case reviews.IsNotServed(err):
		return fmt.Sprintf("the cluster does not serve %s: kube-queue is not installed there, or in an older version; see kubectl config current-context", resourceOf(err))
	case errors.Is(err, reviews.ErrMayNotAsk):
		return oneLine(err) + "; ask an administrator for this right, or set -n to a namespace that you may view"
	case apierrors.IsForbidden(err):
		return oneLine(err) + "; ask an administrator for this right"
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of the API server is not trusted: %v", unknown)
	case errors.As(err, &toServer):
		return unreachable(toServer)
	default:
		return oneLine(err)
	}
}

// oneLine returns the text of the error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// unreachable says that the API server does not answer.
func unreachable(err *url.Error) string {
	server := err.URL
	if parsed, bad := url.Parse(err.URL); bad == nil {
		server = parsed.Scheme + "://" + parsed.Host
	}
	var network *net.OpError
	cause := err.Err
	switch {
	case err.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the API server %s does not answer in time; is the cluster running, and the right one selected (kubectl config current-context)?", server)
	case errors.As(err, &network) && network.Err != nil:
		cause = network.Err
	}
	return fmt.Sprintf("cannot reach the API server %s: %s; is the cluster running, and the right one selected (kubectl config current-context)?", server, oneLine(cause))
}

// resourceOf returns the resource that is not served.
func resourceOf(err error) string {
	if known, is := errors.AsType[*access.NotServed](err); is {
		return known.Resource.String()
	}
	if details := reviews.DetailsOf(err); details != nil && details.Kind != "" {
		if details.Group != "" {
			return details.Kind + "." + details.Group
		}
		return details.Kind
	}
	return "queueunits.scheduling.x-k8s.io"
}
