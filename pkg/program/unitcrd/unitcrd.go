// Package unitcrd checks whether the CRD of QueueUnits in a cluster matches this release.
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

// Await waits until the API server serves QueueUnits, and returns an error if their CRD does not match: an older
// system has a CRD of the same name and version, and the CRD of older releases of kube-queue lacks fields. The API
// server silently drops fields that a CRD does not define, so units without content would be created.
//
// It reads the published schema, which every authenticated user can read.
func Await(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the discovery client for %s: %w", config.Host, err)
	}
	var logged time.Time
	backoff := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Second}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		schema, err := unitSchema(client.OpenAPIV3())
		if apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Info("The API server publishes no schemas, so the CRD of QueueUnits is not checked", "crd", unitCRD)
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
		if time.Since(logged) >= logInterval {
			logged = time.Now()
			if err != nil {
				klog.FromContext(ctx).Error(err, "Cannot read the schema of QueueUnits yet, retrying", "crd", unitCRD)
			} else {
				klog.FromContext(ctx).Info("Waiting for the CRD of QueueUnits; install it, see docs/operations/install.md", "crd", unitCRD)
			}
		}
		return false, nil
	})
}

func foreignUnits(lacks []string) error {
	return fmt.Errorf("the CRD %s in this cluster does not match this release of kube-queue: it lacks %s; "+
		"if it belongs to another release of kube-queue, apply the CRDs of this release; if it belongs to another system, remove it together with its objects first: kubectl delete crd %s",
		unitCRD, strings.Join(lacks, ", "), unitCRD)
}

// unitSchema returns nil while the API server does not serve the group and version.
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
		return nil, nil // removed in the meantime
	}
	return schema, err
}

// published is the part of an OpenAPI v3 schema that is read.
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

// unitLacks lists the fields of QueueUnits that the schema lacks. served is false if the
// schema has no QueueUnits at all, for example because only the CRD of Queue exists yet.
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

// fields returns the JSON names of the fields of a type.
func fields(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
