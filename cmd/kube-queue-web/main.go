// Command kube-queue-web serves the pages of "kubectl kube-queue web" in the cluster, behind a proxy that logs users in
// and adds their tokens. It has no rights of its own, and reads and changes the cluster with the token of each request.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/cmd/kube-queue-web/options"
	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/web"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/identity"
	"kube-queue.dev/kube-queue/pkg/program/serving"
)

const (
	// refresh is how often an open page reads its data again. mostAge is when it must reconnect, so that the proxy can
	// check whether its user is still allowed.
	refresh, mostAge = 5 * time.Second, 5 * time.Minute
	// mostAnswering limits a request to the API server, and drain the last requests when the program stops.
	mostAnswering, drain = 20 * time.Second, 10 * time.Second
	// mostUnits is the maximum number of units in all namespaces that a what-if page reads. Their decoded objects share
	// the memory of the pod.
	mostUnits = 20000
)

func main() {
	opts := options.New()
	p := opts.Program()
	p.Environ = os.Environ()
	p.Run = func(ctx context.Context, env *program.Env) error { return run(ctx, env, opts) }
	program.Main(p)
}

func run(ctx context.Context, env *program.Env, opts *options.Options) error {
	server := &rest.Config{Host: opts.Server, TLSClientConfig: rest.TLSClientConfig{CAFile: opts.CAFile},
		UserAgent: identity.UserAgent(options.Name), Timeout: mostAnswering, WarningHandler: rest.NoWarnings{}}
	shared, err := access.New(server)
	if err != nil { // such as a missing CA
		return err
	}
	defer runtime.KeepAlive(shared) // client-go forgets connections that no client uses
	pages := newPages(server, opts)
	endpoint := serving.Endpoint{Flag: options.FlagAddress, Address: opts.Address, What: "pages", Handler: pages, Limits: serving.ForPages(web.MostForm)}
	if opts.CertFile != "" {
		certificate, err := serving.OfFiles(ctx, opts.CertFile, opts.KeyFile)
		if err != nil {
			return err
		}
		endpoint.Secure = &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12}
	}
	served, err := endpoint.Serve(ctx)
	if err != nil {
		return err
	}
	served.RegisterOnShutdown(pages.EndStreams)
	env.MarkReady()
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := served.Shutdown(stopping); err != nil {
		klog.FromContext(ctx).Error(err, "Requests were aborted")
	}
	return nil
}

// newPages returns the pages of the API server.
func newPages(server *rest.Config, opts *options.Options) *web.Server {
	return web.New(web.Options{
		Open:    func(token string) (web.Reader, error) { return open(server, opts.Namespace, token) },
		ByToken: true, Namespace: "default", Hosts: opts.Hosts(), Refresh: refresh, MostAge: mostAge, Now: time.Now,
	})
}

// open returns a reader that has only the token: no other header of the request, and no credentials of this program.
// Clients with different tokens share connections, which have no credentials.
func open(server *rest.Config, queueNamespace, token string) (web.Reader, error) {
	if token == "" {
		return nil, errors.New("the request has no token")
	}
	config := rest.AnonymousClientConfig(server)
	config.BearerToken = token
	cluster, err := access.New(config)
	if err != nil {
		return nil, err
	}
	cluster.Namespace, cluster.QueueNamespace, cluster.Out, cluster.Now = "default", queueNamespace, io.Discard, time.Now
	cluster.MostUnits = mostUnits
	return cluster.NewReader(), nil
}
