package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	informers "kube-queue.dev/kube-queue/pkg/generated/informers/externalversions"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/tolerant"
)

// Config of a Controller. All fields but Emit and CheckInvariants are needed.
type Config struct {
	Client  versioned.Interface
	Dynamic dynamic.Interface
	Clock   clock.Clock
	// Namespace of the Queue objects.
	Namespace string
	// Policy of queues that name none.
	Policy queue.Policy
	// Oversell is the rate that limits are multiplied with.
	Oversell resources.Rate
	// PauseBorrowing: while a unit waits for what others have borrowed of its group's
	// min, nobody borrows more of that.
	PauseBorrowing bool
	// Workers is the number of status writes under way at most.
	Workers int
	// CheckInvariants proves the core's invariants after every event, and ends
	// Run with an error when one is broken. It takes time proportional to the
	// number of units.
	CheckInvariants bool
	// Emit writes an event about an object.
	Emit func(about *unstructured.Unstructured, kind, reason, message string)
	// Synced is called once everything is known and deciding starts.
	Synced func()
}

// Run decides until the context ends; it returns an error when it cannot go on.
func Run(ctx context.Context, cfg Config) error {
	logger := klog.FromContext(ctx)
	sources, err := newSources(cfg)
	if err != nil {
		return err
	}
	loop := sources.loop(cfg, logger)
	if err := sources.handle(loop.inbox); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	sources.start(ctx)
	if err := sources.wait(ctx); err != nil {
		return err
	}
	loop.inbox.put(treesListed)
	if cfg.Synced != nil {
		cfg.Synced()
	}
	group.Go(func() { loop.applier.run(ctx, cfg.Workers) })
	group.Go(func() { loop.publisher.run(ctx) })
	return loop.run(ctx)
}

// sources are the informers that the controller lives on.
type sources struct {
	queues  informers.SharedInformerFactory
	dynamic dynamicinformer.DynamicSharedInformerFactory

	units, queue, trees cache.SharedIndexInformer
	handled             []cache.ResourceEventHandlerRegistration
}

func newSources(cfg Config) (*sources, error) {
	// Anybody may make a unit, and its schema does not keep out all that cannot be
	// read.
	units, err := tolerant.Informer(unitsOf(cfg.Client), "queueunits", cache.Indexers{}, compactUnit)
	if err != nil {
		return nil, err
	}
	s := &sources{
		units:   units,
		queues:  informers.NewSharedInformerFactoryWithOptions(cfg.Client, 0, informers.WithNamespace(cfg.Namespace), informers.WithTransform(dropManagedFields)),
		dynamic: dynamicinformer.NewDynamicSharedInformerFactory(cfg.Dynamic, 0),
	}
	s.queue = s.queues.Scheduling().V1alpha1().Queues().Informer()
	// Trees are read one by one: no schema describes a whole tree, and one that a
	// typed client cannot decode would hide all others.
	s.trees = s.dynamic.ForResource(quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")).Informer()
	return s, nil
}

// unitsOf reads and patches QueueUnits through the client's connection.
func unitsOf(client versioned.Interface) *tolerant.Client {
	return tolerant.NewClient(client.SchedulingV1alpha1().RESTClient(), unitKind())
}

func unitKind() tolerant.Kind {
	return tolerant.Kind{
		GroupVersionKind: schedulingv1alpha1.SchemeGroupVersion.WithKind("QueueUnit"), Resource: "queueunits",
		New: func() tolerant.Object { return &schedulingv1alpha1.QueueUnit{} },
	}
}

func dropManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func (s *sources) loop(cfg Config, logger klog.Logger) *loop {
	names := resources.NewNames()
	inbox := newInbox()
	return &loop{
		clock: cfg.Clock, logger: logger, inbox: inbox, names: names, check: cfg.CheckInvariants,
		core:      scheduler.New(scheduler.Options{Policy: cfg.Policy}),
		reader:    newUnitReader(names),
		forest:    newForest(names, tree.Options{Oversell: cfg.Oversell, PauseBorrowing: cfg.PauseBorrowing}),
		applier:   newApplier(cfg.Client, cfg.Clock, inbox),
		publisher: newPublisher(cfg.Client, s.queues.Scheduling().V1alpha1().Queues().Lister(), cfg.Namespace, cfg.Clock),
		emit: func(e treeEvent) {
			logger.Info("Quota tree", "tree", klog.KObj(e.about), "reason", e.reason, "message", e.message)
			if cfg.Emit != nil {
				cfg.Emit(e.about, e.kind, e.reason, e.message)
			}
		},
		unreadable: unreadableUnits{emit: cfg.Emit},
	}
}

// handle has the inbox told of everything that the informers see.
func (s *sources) handle(inbox *inbox) error {
	errs := []error{
		s.add(s.trees, func(o any) { inbox.put(treeSeen(keyOf(o), o.(*unstructured.Unstructured))) },
			func(key string, _ any) { inbox.put(treeSeen(key, nil)) }),
		s.add(s.queue, func(o any) { inbox.put(queueSeen(o.(*schedulingv1alpha1.Queue))) },
			func(_ string, o any) {
				if q, ok := o.(*schedulingv1alpha1.Queue); ok {
					inbox.put(queueGone(q.Name))
				}
			}),
		s.add(s.units, func(o any) { inbox.put(unitSeen(o.(tolerant.Object))) },
			func(key string, o any) {
				if u, ok := o.(tolerant.Object); ok {
					inbox.put(unitGone(key, string(u.GetUID())))
				}
			}),
	}
	return errors.Join(errs...)
}

func (s *sources) add(informer cache.SharedIndexInformer, seen func(any), gone func(key string, last any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, o any) { seen(o) },
		DeleteFunc: func(o any) {
			last := o
			if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				last = tombstone.Obj
			}
			gone(keyOf(o), last)
		},
	})
	s.handled = append(s.handled, registration)
	return err
}

func keyOf(object any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return "" // informers hold nothing that has no key
	}
	return key
}

func (s *sources) start(ctx context.Context) {
	go s.units.RunWithContext(ctx)
	s.queues.Start(ctx.Done())
	s.dynamic.Start(ctx.Done())
}

// wait until everything that the informers listed is in the inbox.
func (s *sources) wait(ctx context.Context) error {
	synced := make([]cache.InformerSynced, len(s.handled))
	for i, registration := range s.handled {
		synced[i] = registration.HasSynced
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) && ctx.Err() == nil {
		return fmt.Errorf("cannot list units, queues and quota trees")
	}
	return ctx.Err()
}
