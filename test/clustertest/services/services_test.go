package services

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/podrunner"
)

func TestServicesLeadToProgramsBeforeAndAfterAnUpgrade(t *testing.T) {
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+clustertest.Namespace+"}\n")
	routed := newRouted(t)
	aggregated := newAggregated(t)
	pods := newPods(t)
	version := func(t *testing.T, want string) {
		found, err := client(t).Discovery().ServerVersion()
		must(t, err)
		if got := found.Major + "." + found.Minor; got != want || cluster.Kubernetes != want {
			t.Errorf("the cluster has version %s, and says %s; want %s", got, cluster.Kubernetes, want)
		}
	}
	checks := func(t *testing.T, want string) {
		version(t, want)
		t.Run("a route leads to its addresses that accept connections", routed.check)
		t.Run("an aggregated API server gets the user", aggregated.check)
		t.Run("pods get connections while they are ready", pods.check)
	}
	t.Run("before", func(t *testing.T) { checks(t, before) })
	t.Run("a second API server reaches them too", func(t *testing.T) {
		kubeconfig, err := cluster.StartSecondAPIServer(t.Context(), after)
		must(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		must(t, err)
		second, err := kubernetes.NewForConfig(config)
		must(t, err)
		found, err := second.Discovery().ServerVersion()
		must(t, err)
		if found.Minor != strings.TrimPrefix(after, "1.") {
			t.Errorf("it has version %s, want %s", found, after)
		}
		pods.expectCalled(t, second)
		must(t, cluster.StopSecondAPIServer(t.Context()))
		version(t, before)
	})
	must(t, cluster.Upgrade(t.Context(), after))
	t.Run("after", func(t *testing.T) { checks(t, after) })
	if err := cluster.Upgrade(t.Context(), before); err == nil || !strings.Contains(err.Error(), "is not newer") {
		t.Errorf("an upgrade to an older version: %v", err)
	}
}

// webhook is a webhook behind a Service. It is called for ConfigMaps with its label.
type webhook struct {
	name string
	// certificate is that of the Service in PEM, with its key and its authority.
	certificate, key []byte
}

func newWebhook(t *testing.T, name string) webhook {
	t.Helper()
	w := webhook{name: name}
	w.certificate, w.key = certificate(t, name)
	apply(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: %[1]s.example.com
  clientConfig:
    service: {namespace: %[2]s, name: %[1]s, port: 443, path: /mutate}
    caBundle: %[3]s
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  objectSelector: {matchLabels: {webhook: %[1]s}}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
`, name, clustertest.Namespace, base64.StdEncoding.EncodeToString(w.certificate)))
	return w
}

// certificate returns a certificate of a Service with its authority, and its key.
func certificate(t *testing.T, service string) (certificate, key []byte) {
	t.Helper()
	host := service + "." + clustertest.Namespace + ".svc"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, []string{host})
	must(t, err)
	return certificate, key
}

// call creates a ConfigMap as a dry run, and returns the name of the program that the webhook has called.
func (w webhook) call(ctx context.Context, client kubernetes.Interface) (string, error) {
	created, err := client.CoreV1().ConfigMaps(clustertest.Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "called", Labels: map[string]string{"webhook": w.name}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	if created.Data["by"] == "" {
		return "", fmt.Errorf("webhook %s is not called", w.name)
	}
	return created.Data["by"], nil
}

// expectBy waits until exactly these programs are called.
func (w webhook) expectBy(t *testing.T, want ...string) {
	t.Helper()
	api := client(t)
	const calls = 12 // the probability that one of two is never called is 1 in 2,000
	eventually(t, fmt.Sprintf("webhook %s is called at %v", w.name, want), func(ctx context.Context) error {
		var got []string
		for range calls {
			by, err := w.call(ctx, api)
			if err != nil {
				return err
			}
			if !slices.Contains(got, by) {
				got = append(got, by)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it is called at %v", got)
		}
		return nil
	})
}

// expectRefused waits until a call is refused with an error that contains the words.
func (w webhook) expectRefused(t *testing.T, words string) {
	t.Helper()
	api := client(t)
	eventually(t, "a call of webhook "+w.name+" is refused", func(ctx context.Context) error {
		by, err := w.call(ctx, api)
		if err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("got %q, %v; want an error with %q", by, err, words)
		}
		return nil
	})
}

// routed is a webhook whose Service has no pods but routes to programs.
type routed struct {
	webhook
	service string
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	r := &routed{webhook: newWebhook(t, "routed"), service: clustertest.Namespace + "/routed:443"}
	apply(t, "apiVersion: v1\nkind: Service\nmetadata: {name: routed, namespace: "+clustertest.Namespace+"}\nspec: {ports: [{port: 443}]}\n")
	return r
}

func (r *routed) check(t *testing.T) {
	r.expectRefused(t, "connection refused: Service kube-queue/routed, port 443: it has no ready endpoint")
	one, other := r.serve(t, "one"), r.serve(t, "other")
	must(t, cluster.Route(t.Context(), r.service, one.address, other.address))
	r.expectBy(t, "one", "other")
	must(t, one.Close())
	r.expectBy(t, "other")
	must(t, other.Close())
	r.expectRefused(t, "connection refused")
	must(t, cluster.Route(t.Context(), r.service))
	r.expectRefused(t, "it has no ready endpoint")
}

// program is a server in the test's process.
type program struct {
	*http.Server
	address string
}

func (r *routed) serve(t *testing.T, name string) *program {
	t.Helper()
	pair, err := tls.X509KeyPair(r.certificate, r.key)
	must(t, err)
	server := webhookServer(name)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	return &program{server, listener.Addr().String()}
}

// aggregated is an aggregated API server, at the address of an EndpointSlice.
type aggregated struct{}

const group = "test.kube-queue.dev"

func newAggregated(t *testing.T) *aggregated {
	t.Helper()
	authentication, err := client(t).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	must(t, err)
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM([]byte(authentication.Data["requestheader-client-ca-file"])) {
		t.Fatalf("no authority in %v", authentication.Data)
	}
	certificate, key := certificate(t, "aggregated")
	pair, err := tls.X509KeyPair(certificate, key)
	must(t, err)
	listener, err := net.Listen("tcp", "127.77.255.1:0")
	must(t, err)
	server := &http.Server{
		Handler:   http.HandlerFunc(answerUser),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority},
	}
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	apply(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: aggregated, namespace: %[1]s}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: aggregated, namespace: %[1]s, labels: {kubernetes.io/service-name: aggregated}}
addressType: IPv4
ports: [{name: https, port: %[2]d}]
endpoints: [{addresses: [10.77.255.1], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.%[3]s}
spec:
  group: %[3]s
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {namespace: %[1]s, name: aggregated, port: 443}
  caBundle: %[4]s
`, clustertest.Namespace, listener.Addr().(*net.TCPAddr).Port, group, base64.StdEncoding.EncodeToString(certificate)))
	return &aggregated{}
}

// user is the answer of the aggregated API server.
type user struct {
	Client string
	Name   string
	Groups []string
}

func answerUser(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any = user{r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Get("X-Remote-User"), r.Header.Values("X-Remote-Group")}
	if !strings.HasSuffix(r.URL.Path, "/user") { // discovery
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group + "/v1"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *aggregated) check(t *testing.T) {
	eventually(t, "the aggregated API server answers", func(ctx context.Context) error {
		out, err := cluster.Kubectl(ctx, "get", "--raw", "/apis/"+group+"/v1/user")
		if err != nil {
			return err
		}
		var got user
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			return fmt.Errorf("%q: %w", out, err)
		}
		if got.Client != "front-proxy-client" || got.Name != "admin" || !slices.Contains(got.Groups, "system:masters") {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// pods are the pods of a Deployment that serves a webhook.
type pods struct {
	webhook
	folder string
}

func newPods(t *testing.T) *pods {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &pods{webhook: newWebhook(t, "pods"), folder: t.TempDir()}
	programs := t.TempDir()
	must(t, os.Symlink(self, filepath.Join(programs, serverName)))
	runner, err := podrunner.New(podrunner.Options{Cluster: cluster, Programs: programs, Folder: p.folder})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	apply(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: pods, namespace: %[1]s}
spec: {selector: {app: pods}, ports: [{port: 443, targetPort: webhook}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pods, namespace: %[1]s}
data: {certificate: %[2]q}
`, clustertest.Namespace, string(p.certificate)+string(p.key)))
	return p
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: pods, namespace: kube-queue}
spec:
  replicas: 2
  selector: {matchLabels: {app: pods}}
  template:
    metadata:
      labels: {app: pods}
      annotations: {` + podrunner.Annotation + `: ` + podrunner.Own + `}
    spec:
      serviceAccountName: default
      containers:
      - name: server
        image: ` + serverName + `:v1
        args: ["--webhook-bind-address=:9443", "--certificate=/etc/serving/certificate"]
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{name: health, containerPort: 8081}, {name: webhook, containerPort: 9443}]
        readinessProbe: {httpGet: {path: /, port: health}}
        volumeMounts: [{name: serving, mountPath: /etc/serving}]
      volumes: [{name: serving, configMap: {name: pods}}]
`

func (p *pods) check(t *testing.T) {
	apply(t, deployment)
	_, err := cluster.Kubectl(t.Context(), "-n", clustertest.Namespace, "rollout", "status", "deployment/pods", "--timeout="+patience.String())
	must(t, err)
	names := p.names(t)
	if len(names) != 2 {
		t.Fatalf("got pods %v, want two", names)
	}
	p.expectBy(t, names...)
	p.setReady(t, names[0], false)
	p.expectBy(t, names[1])
	p.setReady(t, names[1], false)
	p.expectRefused(t, "Service kube-queue/pods, port 443: it has no ready endpoint")
	p.setReady(t, names[0], true)
	p.setReady(t, names[1], true)
	p.expectBy(t, names...)
}

// expectCalled expects that another API server calls the webhook.
func (p *pods) expectCalled(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	eventually(t, "the webhook is called", func(ctx context.Context) error {
		_, err := p.call(ctx, api)
		return err
	})
}

func (p *pods) names(t *testing.T) []string {
	t.Helper()
	list, err := client(t).CoreV1().Pods(clustertest.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=pods"})
	must(t, err)
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func (p *pods) setReady(t *testing.T, pod string, ready bool) {
	t.Helper()
	file := filepath.Join(p.folder, pod, notReady)
	if ready {
		must(t, os.Remove(file))
	} else {
		must(t, os.WriteFile(file, nil, 0o600))
	}
}
