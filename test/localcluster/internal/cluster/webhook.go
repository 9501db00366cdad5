package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	// webhookCertificates is the folder in TMPDIR where a webhook server looks for its certificate.
	webhookCertificates = "k8s-webhook-server/serving-certs"
	// webhookFolder is the folder of a component with the webhook configurations of its operator.
	webhookFolder = "webhook"
)

// prepareWebhooks creates the certificate of an operator with a webhook server, and the webhook
// configurations in its module, if there are any.
func (s *setup) prepareWebhooks(ctx context.Context, name string, o operator, kustomization string) error {
	if !slices.Contains(o.ports, "webhook") {
		return nil
	}
	authority, err := webhookCertificate(filepath.Join(s.temporary(name), webhookCertificates), name, o.namespace)
	if err != nil || !hasWebhooks(o) {
		return err
	}
	return s.registerWebhooks(ctx, kustomization, o.webhookPrefix, s.ports.address(name+"-webhook"), authority)
}

// hasWebhooks reports whether the operator's component has webhook configurations.
func hasWebhooks(o operator) bool { return len(o.component.Files) > 1 }

// webhookCertificate writes the certificate of an operator's webhook server into dir, and returns
// the CA certificate. It is valid for the name of the Service and for the loopback address.
func webhookCertificate(dir, operator, namespace string) (authority []byte, err error) {
	ca, err := newAuthority(operator + "-ca")
	if err != nil {
		return nil, err
	}
	name := operator + "." + namespace + ".svc"
	serving, err := ca.serving(name, []string{name}, net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(dir, "tls.crt"), serving.certificate); err != nil {
		return nil, err
	}
	return certificatePEM(ca.certificate.Raw), writeFile(filepath.Join(dir, "tls.key"), serving.key)
}

// webhookPaths has the API path of each kind of webhook configuration.
var webhookPaths = map[string]string{
	"MutatingWebhookConfiguration":   "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}

// webhookConfiguration has the fields that are changed.
type webhookConfiguration struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   object   `json:"metadata"`
	Webhooks   []object `json:"webhooks"`
}

// lead replaces the Service, which has no pods here and would need a route, with the URL of the server at address.
func (c webhookConfiguration) lead(address string, authority []byte) error {
	for _, webhook := range c.Webhooks {
		client, _ := webhook["clientConfig"].(object)
		service, _ := client["service"].(object)
		path, _ := service["path"].(string)
		if path == "" {
			return fmt.Errorf("%s %v: webhook %v has no service path", c.Kind, c.Metadata["name"], webhook["name"])
		}
		webhook["clientConfig"] = object{
			"url":      "https://" + address + path,
			"caBundle": base64.StdEncoding.EncodeToString(authority),
		}
	}
	return nil
}

// registerWebhooks creates the webhook configurations in an operator's module, with a prefix for
// their names. They are a kustomization, which kubectl renders.
func (s *setup) registerWebhooks(ctx context.Context, kustomization, prefix, address string, authority []byte) error {
	cmd := exec.CommandContext(ctx, s.config.Kubectl(), "--kubeconfig="+s.folder.Kubeconfig(),
		"create", "--dry-run=client", "--output=json", "--kustomize="+kustomization)
	cmd.Env = s.environment()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	rendered, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("render %s: %w: %s", kustomization, err, bytes.TrimSpace(errs.Bytes()))
	}
	documents := json.NewDecoder(bytes.NewReader(rendered))
	for {
		var configuration webhookConfiguration
		if err := documents.Decode(&configuration); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", kustomization, err)
		}
		if webhookPaths[configuration.Kind] == "" {
			continue
		}
		configuration.Metadata["name"] = fmt.Sprint(prefix, configuration.Metadata["name"])
		if err := configuration.lead(address, authority); err != nil {
			return err
		}
		if err := s.createIfMissing(ctx, webhookPaths[configuration.Kind], configuration); err != nil {
			return err
		}
	}
}
