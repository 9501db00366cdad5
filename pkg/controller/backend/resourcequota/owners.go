package resourcequota

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
)

// jobs, rayClusters and jobSets are the objects between pods and the jobs that create them: Jobs in
// general, RayClusters of RayJobs, and JobSets of TrainJobs.
var (
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	rayClusters = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
	jobSets     = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
)

// watchOwners starts watches of the objects between pods and jobs. It does not wait for RayClusters and
// JobSets, because a cluster may not have these kinds. A pod counts as a pod without a holder until its
// owner is known, so that too little is admitted rather than too much.
func (s *Source) watchOwners(ctx context.Context, config *rest.Config) (synced []cache.InformerSynced, err error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, fmt.Errorf("watching the owners of pods: %w", err)
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	for _, kind := range []struct {
		schema.GroupVersionResource
		always bool
	}{{jobs, true}, {rayClusters, false}, {jobSets, false}} {
		informer := factory.ForResource(kind.GroupVersionResource).Informer()
		if err := informer.SetTransform(slimOwner); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(ignoreMissing); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
		has, err := backend.Follow(informer, s.ownerSeen, s.ownerGone)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
		if kind.always {
			synced = append(synced, has)
		}
	}
	factory.Start(ctx.Done())
	return synced, nil
}

// ignoreMissing logs no error for a kind that the cluster does not have. The informer tries again
// from time to time.
func ignoreMissing(ctx context.Context, r *cache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(3).Info("The kind is not served; trying again later", "kind", r.TypeDescription())
		return
	}
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

func slimOwner(object any) (any, error) {
	if o, is := object.(*metav1.PartialObjectMetadata); is {
		o.ObjectMeta = slimMeta(o)
	}
	return object, nil
}

func (s *Source) ownerSeen(object any) {
	if o, is := object.(*metav1.PartialObjectMetadata); is {
		s.host.Take(func() backend.Change {
			return s.observe(resourcequota.OwnerSeen{Namespace: o.Namespace, UID: string(o.UID), Owner: ownerOf(&o.ObjectMeta)})
		})
	}
}

func (s *Source) ownerGone(_ string, last any) {
	if o, is := last.(*metav1.PartialObjectMetadata); is {
		s.host.Take(func() backend.Change {
			return s.observe(resourcequota.Gone{Namespace: o.Namespace, UID: string(o.UID)})
		})
	}
}
