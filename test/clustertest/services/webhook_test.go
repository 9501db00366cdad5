package services

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"

	"kube-queue.dev/kube-queue/test/clustertest"
)

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
