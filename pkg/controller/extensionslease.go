package controller

import (
	"context"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// extensionsLease is the name of the Lease of job-extensions.
const extensionsLease = "job-extensions"

// watchExtensionsLease calls seen with the labels of the Lease of job-extensions, which list the kinds that it does
// not queue. The Lease is renewed every few seconds, but its labels change only with the settings. Decisions wait for
// the first list.
func watchExtensionsLease(ctx context.Context, config *rest.Config, namespace string, seen func(labels map[string]string)) (cache.InformerSynced, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watching the Lease of job-extensions: %w", err)
	}
	itself := fields.OneTermEqualSelector(metav1.ObjectNameField, extensionsLease).String()
	informer := metadatainformer.NewFilteredMetadataInformer(client, coordinationv1.SchemeGroupVersion.WithResource("leases"),
		namespace, 0, cache.Indexers{}, func(list *metav1.ListOptions) { list.FieldSelector = itself }).Informer()
	last := map[string]string{}
	synced, err := follow.Objects(informer,
		func(lease *metav1.PartialObjectMetadata) {
			if !maps.Equal(lease.Labels, last) {
				last = lease.Labels
				seen(last)
			}
		},
		func(*metav1.PartialObjectMetadata) {}) // deleting the Lease does not turn these kinds on
	if err != nil {
		return nil, fmt.Errorf("watching the Lease of job-extensions: %w", err)
	}
	go informer.RunWithContext(ctx)
	return synced, nil
}
