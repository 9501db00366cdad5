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
)

// webhookCertificates is where a webhook server looks below its TMPDIR.
const webhookCertificates = "k8s-webhook-server/serving-certs"

// webhookCertificate writes the certificate of an operator's webhook server into
// dir, and returns that of the authority which signed it. It is valid for the
// name a Service would have and for the loopback address.
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

// webhookPaths are where the API keeps each kind of webhook configuration.
var webhookPaths = map[string]string{
	"MutatingWebhookConfiguration":   "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}

// webhookConfiguration is what is changed of one.
type webhookConfiguration struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   object   `json:"metadata"`
	Webhooks   []object `json:"webhooks"`
}

// createWebhooks makes a configuration that was written for a Service, with the
// server at address in its place: there are no Services that lead anywhere.
func (s *setup) createWebhooks(ctx context.Context, c webhookConfiguration, address string, authority []byte) error {
	for _, webhook := range c.Webhooks {
		client, _ := webhook["clientConfig"].(object)
		service, _ := client["service"].(object)
		path, _ := service["path"].(string)
		if path == "" {
			return fmt.Errorf("%s %v: webhook %v names no path of a service", c.Kind, c.Metadata["name"], webhook["name"])
		}
		webhook["clientConfig"] = object{
			"url":      "https://" + address + path,
			"caBundle": base64.StdEncoding.EncodeToString(authority),
		}
	}
	return s.api.create(ctx, webhookPaths[c.Kind], c)
}

// registerWebhooks makes the configurations as an operator's module has them, with
// prefix before their names. They are a kustomization, which kubectl can read.
func (s *setup) registerWebhooks(ctx context.Context, kustomization, prefix, address string, authority []byte) error {
	cmd := exec.CommandContext(ctx, s.program(controlPlane, "kubectl"), "--kubeconfig="+s.folder.Kubeconfig(),
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
		if err := s.createWebhooks(ctx, configuration, address, authority); err != nil {
			return err
		}
	}
}
