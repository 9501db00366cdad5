// Package unitcrd finds out whether the QueueUnits of a cluster are those of this
// release.
package unitcrd

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

const (
	unitCRD     = "queueunits.scheduling.x-k8s.io"
	unitOpenAPI = "apis/scheduling.x-k8s.io/v1alpha1"
	logInterval = time.Minute
)

// Await waits until the API server serves QueueUnits, and returns an error when they
// are not ours: an older system has a CRD of the same name and version, and an older release
// of our own lacks fields. The API server drops what a CRD does not know without a word, so
// units would be made that say nothing.
//
// It looks at the published schema, which whoever has an account may read.
func Await(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	var told time.Time
	backoff := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Second}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		schema, err := unitSchema(client.OpenAPIV3())
		if apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Info("The API server publishes no schemas: whether its QueueUnits are ours is not checked", "crd", unitCRD)
			return true, nil
		}
		if err == nil && schema != nil {
			lacks, served, err := unitLacks(schema)
			switch {
			case err != nil:
				return false, fmt.Errorf("reading the schema of %s: %w", unitCRD, err)
			case len(lacks) > 0:
				return false, foreignUnits(lacks)
			case served:
				return true, nil
			}
		}
		if time.Since(told) >= logInterval {
			told = time.Now()
			if err != nil {
				klog.FromContext(ctx).Error(err, "The schema of QueueUnits cannot be read yet, trying again", "crd", unitCRD)
			} else {
				klog.FromContext(ctx).Info("Waiting for the CRD of QueueUnits: install it, see docs/operations/install.md", "crd", unitCRD)
			}
		}
		return false, nil
	})
}

func foreignUnits(lacks []string) error {
	return fmt.Errorf("the CRD %s in this cluster is not that of this release of kube-queue: it lacks %s. "+
		"If it is that of another release, apply this one's CRDs. If it is another system's, remove it with its objects first: kubectl delete crd %s",
		unitCRD, strings.Join(lacks, ", "), unitCRD)
}

// unitSchema is nil while the API server serves no such group and version.
func unitSchema(client openapi.Client) ([]byte, error) {
	served, err := client.Paths()
	if err != nil {
		return nil, err
	}
	version, there := served[unitOpenAPI]
	if !there {
		return nil, nil
	}
	schema, err := version.Schema("application/json")
	if apierrors.IsNotFound(err) {
		return nil, nil // gone since
	}
	return schema, err
}

// published is what is read of a schema in OpenAPI 3.
type published struct {
	Paths      map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Kinds []struct {
				Kind string `json:"kind"`
			} `json:"x-kubernetes-group-version-kind"`
			Properties map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

// unitLacks lists what our QueueUnits have and those of the schema have not; served is
// false if it has none at all, as when the CRD of Queue was faster.
func unitLacks(schema []byte) (lacks []string, served bool, err error) {
	var doc published
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, false, err
	}
	ours := map[string]reflect.Type{
		"spec":   reflect.TypeFor[schedulingv1alpha1.QueueUnitSpec](),
		"status": reflect.TypeFor[schedulingv1alpha1.QueueUnitStatus](),
	}
	for _, found := range doc.Components.Schemas {
		if len(found.Kinds) != 1 || found.Kinds[0].Kind != "QueueUnit" {
			continue
		}
		for _, part := range []string{"spec", "status"} {
			for _, field := range fields(ours[part]) {
				if _, known := found.Properties[part].Properties[field]; !known {
					lacks = append(lacks, part+"."+field)
				}
			}
		}
		if _, known := doc.Paths["/"+unitOpenAPI+"/namespaces/{namespace}/queueunits/{name}/status"]; !known {
			lacks = append(lacks, "the subresource status")
		}
		return lacks, true, nil
	}
	return nil, false, nil
}

// fields of a type, as they are called in JSON.
func fields(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
