package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/controller/podwatch"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Config configures Run. Fields that allow zero say so; Backoff, Emit, Metrics, Views, Estimates, Synced, CheckInvariants and
// AuditInvariants are also optional.
type Config struct {
	// Client is the client for units and Queues.
	Client *clientset.Clientset
	// Source is the source of the quota. Run starts it, so it can be used only once.
	Source backend.Source
	// Rest is the configuration for the clients of the Source and for watching pods.
	Rest  *rest.Config
	Clock clock.WithTicker
	// Namespace is the namespace of the Queue objects and of the other objects of the program.
	Namespace string
	// Policy is the policy of queues that set none.
	Policy *queue.Policy
	// Backoff is the backoff of policy RoundRobin. If zero, the default applies.
	Backoff queue.Backoff
	// PublishInterval is the shortest time between two writes of the status of a Queue or of an object of the
	// quota. If zero, the constant of this name applies.
	PublishInterval time.Duration
	// UnrenewedUnitTimeout is how long a hand-made unit holds quota after its admission or its last renewal; 0 means
	// forever.
	UnrenewedUnitTimeout time.Duration
	// Workers is the maximum number of concurrent status writes.
	Workers int
	// CheckInvariants verifies the invariants of the core after every event and ends Run with an error
	// if one is broken. It takes time proportional to the number of units.
	CheckInvariants bool
	// AuditInvariants periodically recomputes used quota from units and pods. Differences are logged, counted and
	// corrected.
	AuditInvariants bool
	// Emit writes an event on an object.
	Emit func(backend.Notice)
	// Metrics are the metrics to update.
	Metrics *metrics.Controller
	// Views answers questions about the state while Run is running.
	Views *Views
	// Estimates learns how long units run and wait.
	Estimates *Estimates
	// Synced is called when all existing objects were processed and decisions begin.
	Synced func()
}

// Run runs the controller until the context ends. It returns an error if it cannot continue.
func Run(ctx context.Context, cfg Config) error {
	logger := klog.FromContext(ctx)
	watched, err := newInformers(cfg)
	if err != nil {
		return err
	}
	loop := watched.loop(cfg, logger)
	if err := watched.handle(loop.inbox); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	watched.start(ctx)
	synced, err := cfg.Source.Start(ctx, loop.host(cfg.Rest))
	if err != nil {
		return err
	}
	pods, err := loop.watchPods(ctx, cfg)
	if err != nil {
		return err
	}
	if err := watchStrayQueues(ctx, cfg.Rest, cfg.Namespace, func(n backend.Notice) {
		loop.inbox.put(reported(n))
	}); err != nil {
		return err
	}
	lease, err := watchExtensionsLease(ctx, cfg.Rest, cfg.Namespace, func(labels map[string]string) { loop.inbox.put(leaseSeen(labels)) })
	if err != nil {
		return err
	}
	if err := watched.wait(ctx, append(slices.Concat(synced, pods), lease)); err != nil {
		return err
	}
	loop.inbox.put(unitsListed)
	loop.inbox.put(quotaListed)
	if cfg.Synced != nil {
		loop.inbox.put(allSeen(cfg.Synced))
	}
	defer cfg.Views.start(loop.inbox)()
	loop.auditor.start = func(read func(context.Context)) { group.Go(func() { read(ctx) }) }
	group.Go(func() { loop.applier.run(ctx, cfg.Workers) })
	group.Go(func() { loop.publisher.run(ctx) })
	return loop.run(ctx)
}

// watchPods watches the pods if they use quota.
func (l *loop) watchPods(ctx context.Context, cfg Config) ([]cache.InformerSynced, error) {
	rules := cfg.Source.Pods()
	if rules.Weigh == nil {
		return nil, nil
	}
	watch, err := podwatch.New(cfg.Rest, rules, cfg.Clock, func(event func() scheduler.Event) { l.inbox.put(podSeen(event)) })
	if err != nil {
		return nil, err
	}
	l.auditor.pods = watch
	return watch.Start(ctx)
}

// explanations is the maximum number of concurrent explanations of why units wait.
const explanations = 4

// requeues is the backoff of a job whose owner repeatedly suspends or deactivates it after its release.
var requeues = backoff.Policy{Free: 3, Initial: 10 * time.Second, Max: 5 * time.Minute, Quiet: 10 * time.Minute}

// checkRetries is the backoff of a unit whose admission checks fail repeatedly. The documentation of AdmissionCheck
// states it.
var checkRetries = backoff.Policy{Initial: 10 * time.Second, Max: 15 * time.Minute, Quiet: 30 * time.Minute}

// startGrace is how long after a start unrenewed units keep their quota. It leaves time to renew units that were
// created before an upgrade.
const startGrace = time.Hour

func renewalAfter(cfg Config) scheduler.Renewal {
	return scheduler.Renewal{Timeout: cfg.UnrenewedUnitTimeout, NotBefore: cfg.Clock.Now().Add(min(startGrace, cfg.UnrenewedUnitTimeout))}
}

// informers watch units, Queues and AdmissionChecks.
type informers struct {
	units          cache.SharedIndexInformer
	queues, checks cache.SharedInformer
	handled        []cache.InformerSynced
}

func newInformers(cfg Config) (*informers, error) {
	// Anyone may create a unit, and the schema accepts some units that cannot be decoded.
	units, err := lenient.Informer(unitsOf(cfg.Client), func(error) {}, "queueunits", cache.Indexers{}, codec.Compactor{Keep: cfg.Source.Keep}.Transform)
	if err != nil {
		return nil, err
	}
	queues, noQueues := settingsInformer(cfg.Client, "Queue", "queues", cfg.Namespace, func() lenient.Object { return &schedulingv1alpha1.Queue{} })
	checks, noChecks := settingsInformer(cfg.Client, "AdmissionCheck", "admissionchecks", metav1.NamespaceAll, func() lenient.Object { return &schedulingv1alpha1.AdmissionCheck{} })
	return &informers{units: units, queues: queues, checks: checks}, errors.Join(noQueues, noChecks)
}

// settingsInformer returns an informer for objects that administrators configure. An earlier schema may have accepted a
// field that cannot be decoded. It is left unset: otherwise no object of the kind could be read.
func settingsInformer(client *clientset.Clientset, kind, resource, namespace string, empty func() lenient.Object) (cache.SharedInformer, error) {
	objects := lenient.NewClient(client.SchedulingV1alpha1().RESTClient(), lenient.Kind{
		GroupVersionKind: schedulingv1alpha1.SchemeGroupVersion.WithKind(kind), Resource: resource, New: empty})
	return lenient.Informer(objects.Within(namespace), func(error) {}, resource, cache.Indexers{}, func(object any) (any, error) {
		if unreadable, is := object.(*lenient.Unreadable); is && unreadable.Partial != nil {
			klog.Background().Error(unreadable.Err, "Ignoring a part of an object", "kind", kind, "object", klog.KObj(unreadable))
			object = unreadable.Partial
		}
		return dropManagedFields(object)
	})
}

// unitsOf returns a client for QueueUnits that uses the connection of the client.
func unitsOf(client *clientset.Clientset) *lenient.Client {
	return lenient.NewClient(client.SchedulingV1alpha1().RESTClient(), codec.UnitKind())
}

func dropManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func (i *informers) loop(cfg Config, logger klog.Logger) *loop {
	inbox := newInbox()
	every := cmp.Or(cfg.PublishInterval, PublishInterval)
	core := scheduler.New(scheduler.Options{Policy: cfg.Policy, Backoff: cfg.Backoff, Requeues: requeues, CheckRetries: checkRetries,
		Explanations: explanations, MinRunTime: scheduler.DefaultMinRunTime})
	publisher := newPublisher(cfg.Client, i.queues.GetStore(), cfg.Namespace, cfg.Clock, every)
	publisher.report = func(n backend.Notice) { inbox.put(reported(n)) }
	return &loop{
		clock: cfg.Clock, logger: logger, inbox: inbox, names: resources.NewNames(), check: cfg.CheckInvariants,
		core:         core,
		sequence:     arrival.NewReceiver[scheduler.Unit](core.Knows),
		source:       cfg.Source,
		namespace:    cfg.Namespace,
		reader:       codec.Reader{Compactor: codec.Compactor{Keep: cfg.Source.Keep}, Demand: cfg.Source.Demand, Kinds: &codec.Kinds{}, Renewal: renewalAfter(cfg)},
		applier:      newApplier(cfg.Client, cfg.Clock, inbox),
		publisher:    publisher,
		publishEvery: min(every, PublishInterval), // metrics must not be older
		emit: func(n backend.Notice) {
			about := logger.WithValues("kind", n.About.GetKind(), "object", klog.KObj(n.About), "reason", n.Reason)
			if n.IsError {
				about.Error(errors.New(n.Message), "Reported an event")
			} else {
				about.Info("Reported an event", "message", n.Message)
			}
			if cfg.Emit != nil {
				cfg.Emit(n)
			}
		},
		unreadable: unreadableUnits{emit: cfg.Emit},
		views:      cfg.Views,
		estimates:  cfg.Estimates,
		measures:   newMeasures(cfg.Metrics),
		auditor:    auditor{on: cfg.AuditInvariants, units: i.units.GetStore(), get: unitsOf(cfg.Client).Get},
	}
}

// handle puts everything that the informers report into the inbox.
func (i *informers) handle(inbox *inbox) error {
	await := func(synced cache.InformerSynced, err error) error {
		i.handled = append(i.handled, synced)
		return err
	}
	return errors.Join(
		await(follow.Objects(i.queues,
			func(q *schedulingv1alpha1.Queue) { inbox.put(queueSeen(q)) },
			func(q *schedulingv1alpha1.Queue) { inbox.put(queueGone(q.Name)) })),
		await(follow.Objects(i.checks,
			func(c *schedulingv1alpha1.AdmissionCheck) { inbox.put(checkSeen(c)) },
			func(c *schedulingv1alpha1.AdmissionCheck) { inbox.put(checkGone(c.Name)) })),
		await(follow.Objects(i.units,
			func(u *codec.Cached) {
				// A unit that was already taken has not changed.
				if unit := u.Take(); unit != nil {
					inbox.put(unitSeen(unit))
				}
			},
			func(u *codec.Cached) { inbox.put(unitGone(u.Namespace+"/"+u.Name, string(u.UID))) })),
	)
}

func (i *informers) start(ctx context.Context) {
	go i.units.RunWithContext(ctx)
	go i.queues.RunWithContext(ctx)
	go i.checks.RunWithContext(ctx)
}

// wait waits until all listed objects, including the others, are in the inbox.
func (i *informers) wait(ctx context.Context, others []cache.InformerSynced) error {
	if !cache.WaitForCacheSync(ctx.Done(), slices.Concat(i.handled, others)...) && ctx.Err() == nil {
		return fmt.Errorf("cannot list QueueUnits, Queues, AdmissionChecks, quota objects, pods and the Lease of job-extensions; see the earlier errors in the log")
	}
	return ctx.Err()
}
