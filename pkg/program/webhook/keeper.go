package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
)

const (
	// settle is how long the API servers can take to read a changed caBundle.
	settle = 10 * time.Second
	// retry is the wait after a failed step.
	retry = 5 * time.Second
	// recheck is the maximum time between checks, for example in case a clock jumps.
	recheck = 6 * time.Hour
	// trusted is the maximum number of certificates in caBundle.
	trusted = 3
)

// configuration is a webhook configuration. Its informer only wakes the keeper. The keeper reads from the API server,
// because a cache may lack the keeper's own writes.
type configuration struct {
	informer cache.SharedIndexInformer
	name     string
	// read returns the version and the bundles of the webhooks.
	read  func(ctx context.Context) (version string, bundles [][]byte, err error)
	patch func(ctx context.Context, data []byte) error
}

// keeper keeps the certificate of the webhooks.
type keeper struct {
	options        Options
	secret         cache.SharedIndexInformer
	configurations []configuration
	// changed receives a value when the Secret or a configuration may have changed.
	changed chan struct{}
	// next is the next certificate, and since is when all configurations were first seen to trust it.
	next  []byte
	since time.Time
}

// Work runs on one replica at a time, until ctx is done. It keeps the certificate if the program manages it, and points
// the Service to this replica if the replica advertises an address.
func (s *Server) Work(ctx context.Context) error {
	if s.options.Advertise != "" {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		led := make(chan struct{})
		defer func() { <-led }()
		defer stop() // also if the work ends with an error
		go func() {
			defer close(led)
			s.lead(ctx)
		}()
	}
	if !s.options.Manage {
		<-ctx.Done()
		return nil
	}
	k := &keeper{options: s.options, secret: s.secret, changed: s.changed}
	for _, name := range s.options.Mutating {
		k.configurations = append(k.configurations, k.mutating(name))
	}
	for _, name := range s.options.Validating {
		k.configurations = append(k.configurations, k.validating(name))
	}
	return k.work(ctx)
}

func (k *keeper) mutating(name string) configuration {
	return newConfiguration(name, k.options.Client.AdmissionregistrationV1().MutatingWebhookConfigurations(),
		admissioninformers.NewFilteredMutatingWebhookConfigurationInformer(k.options.Client, 0, cache.Indexers{}, named(name)),
		func(c *admissionregistrationv1.MutatingWebhookConfiguration) (bundles [][]byte) {
			for _, w := range c.Webhooks {
				bundles = append(bundles, w.ClientConfig.CABundle)
			}
			return bundles
		})
}

func (k *keeper) validating(name string) configuration {
	return newConfiguration(name, k.options.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(k.options.Client, 0, cache.Indexers{}, named(name)),
		func(c *admissionregistrationv1.ValidatingWebhookConfiguration) (bundles [][]byte) {
			for _, w := range c.Webhooks {
				bundles = append(bundles, w.ClientConfig.CABundle)
			}
			return bundles
		})
}

// client reads and patches the objects of one kind of configuration.
type client[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

func newConfiguration[T metav1.Object](name string, client client[T], informer cache.SharedIndexInformer, bundles func(T) [][]byte) configuration {
	return configuration{
		informer: informer, name: name,
		read: func(ctx context.Context) (string, [][]byte, error) {
			found, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", nil, err
			}
			return found.GetResourceVersion(), bundles(found), nil
		},
		patch: func(ctx context.Context, data []byte) error {
			_, err := client.Patch(ctx, name, types.JSONPatchType, data, metav1.PatchOptions{})
			return err
		},
	}
}

func (k *keeper) work(ctx context.Context) error {
	wake := func(any) { follow.Wake(k.changed) }
	synced := []cache.InformerSynced{k.secret.HasSynced}
	for _, c := range k.configurations {
		has, err := follow.Objects(c.informer, wake, wake)
		if err != nil {
			return fmt.Errorf("watching webhook configuration %s: %w", c.name, err)
		}
		synced = append(synced, has)
		go c.informer.RunWithContext(ctx)
	}
	cache.WaitForCacheSync(ctx.Done(), synced...)
	for ctx.Err() == nil {
		again, err := k.step(ctx)
		if err != nil && ctx.Err() == nil {
			again = retry
			if !apierrors.IsConflict(err) {
				klog.FromContext(ctx).Error(err, "Cannot keep the certificate of the webhooks, retrying", "after", retry)
			}
		}
		follow.Pause(ctx, k.options.Clock, again, k.changed)
	}
	return nil
}

// step takes the next step that is due, and returns when to check again if nothing changes.
func (k *keeper) step(ctx context.Context) (again time.Duration, err error) {
	secret, err := k.options.Client.CoreV1().Secrets(k.options.Namespace).Get(ctx, k.options.Service, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading the Secret of the certificate, which the installation creates: %w", err)
	}
	now := k.options.Clock.Now()
	present := k.usable(secret, certificateKey, privateKey, now)
	next := k.usable(secret, nextCertificateKey, nextPrivateKey, now)
	if next == nil && (present == nil || !now.Before(renewal(present))) {
		return recheck, k.prepare(ctx, secret, now)
	}
	var certificates [][]byte
	for _, one := range []*tls.Certificate{next, present} {
		if one != nil {
			certificates = append(certificates, one.Certificate[0])
		}
	}
	settled, err := k.trust(ctx, certificates, now)
	if err != nil {
		return 0, err
	}
	if next == nil {
		return min(recheck, renewal(present).Sub(now)), nil
	}
	if !bytes.Equal(k.next, certificates[0]) {
		k.next, k.since = certificates[0], now
		if settled {
			k.since = now.Add(-settle)
		}
	}
	if wait := k.since.Add(settle).Sub(now); wait > 0 {
		return wait, nil
	}
	return recheck, k.promote(ctx, secret)
}

// usable returns a certificate of the Secret; nil if it cannot be used.
func (k *keeper) usable(secret *corev1.Secret, certificate, key string, now time.Time) *tls.Certificate {
	read, err := selfsigned.Pair{Certificate: secret.Data[certificate], Key: secret.Data[key]}.Load()
	if err != nil || now.After(read.Leaf.NotAfter) || read.Leaf.VerifyHostname(k.host()) != nil {
		return nil
	}
	return read
}

// host returns the name for which API servers verify the certificate.
func (k *keeper) host() string { return k.options.Service + "." + k.options.Namespace + ".svc" }

// renewal returns when to replace a certificate.
func renewal(c *tls.Certificate) time.Time { return c.Leaf.NotAfter.Add(-selfsigned.RenewBefore) }

// prepare writes a new certificate as the next one.
func (k *keeper) prepare(ctx context.Context, secret *corev1.Secret, now time.Time) error {
	made, err := selfsigned.Make([]string{k.host()}, now)
	if err != nil {
		return err
	}
	return k.write(ctx, secret, map[string]any{nextCertificateKey: made.Certificate, nextPrivateKey: made.Key})
}

// promote makes the next certificate the present one.
func (k *keeper) promote(ctx context.Context, secret *corev1.Secret) error {
	return k.write(ctx, secret, map[string]any{
		certificateKey: secret.Data[nextCertificateKey], privateKey: secret.Data[nextPrivateKey],
		nextCertificateKey: nil, nextPrivateKey: nil,
	})
}

func (k *keeper) write(ctx context.Context, secret *corev1.Secret, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": secret.UID, "resourceVersion": secret.ResourceVersion}, "data": data,
	})
	if err == nil {
		_, err = k.options.Client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// trust makes all configurations trust the certificates, which are in DER. settled is true if none of them trusted
// another usable certificate before: then no API server can have called a webhook successfully.
func (k *keeper) trust(ctx context.Context, certificates [][]byte, now time.Time) (settled bool, err error) {
	settled = true
	for _, c := range k.configurations {
		version, bundles, err := c.read(ctx)
		if apierrors.IsNotFound(err) {
			continue // the chart installs it last
		}
		if err != nil {
			return false, fmt.Errorf("reading webhook configuration %s: %w", c.name, err)
		}
		operations := []map[string]any{{"op": "add", "path": "/metadata/resourceVersion", "value": version}}
		for i, bundle := range bundles {
			known := parse(bundle, now)
			others := slices.DeleteFunc(known, func(der []byte) bool { return within(certificates, der) })
			if len(others) > 0 || len(certificates) > 1 {
				settled = false
			}
			if containsAll(bundle, certificates) {
				continue
			}
			wanted := append(slices.Clone(certificates), others...)
			operations = append(operations, map[string]any{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i),
				"value": encode(wanted[:min(len(wanted), trusted)])})
		}
		if len(operations) == 1 {
			continue
		}
		data, err := json.Marshal(operations)
		if err == nil {
			err = c.patch(ctx, data)
		}
		if err != nil {
			return false, fmt.Errorf("writing caBundle of %s: %w", c.name, err)
		}
		klog.FromContext(ctx).Info("The webhooks trust a certificate", "configuration", c.name)
	}
	return settled, nil
}

// parse returns the certificates of a bundle that have not expired, in DER.
func parse(bundle []byte, now time.Time) [][]byte {
	var all [][]byte
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return all
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(c.NotAfter) {
			all = append(all, block.Bytes)
		}
	}
}

func containsAll(bundle []byte, certificates [][]byte) bool {
	known := parse(bundle, time.Time{})
	return !slices.ContainsFunc(certificates, func(der []byte) bool { return !within(known, der) })
}

func within(all [][]byte, der []byte) bool {
	return slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(other, der) })
}

func encode(certificates [][]byte) []byte {
	var text []byte
	for _, der := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return text
}
