package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// SparkDriver simulates the programs in driver pods. It creates executors when their driver runs, and deletes them
// when the driver has ended or is deleted. One process serves all drivers. It creates each executor once: it does not
// replace failed or deleted ones, and dynamic allocation stays at its initial number.
const SparkDriver = "spark-driver"

func serveSparkDrivers(ctx context.Context, client *kube.Client, _ []string) error {
	drivers := &sparkDrivers{client: client, known: map[string]*sparkApp{}}
	return followPods(ctx, client.Dynamic, sparkRoleLabel+"="+string(sparkDriverRole), drivers.handle)
}

// sparkDrivers has all drivers by UID.
type sparkDrivers struct {
	client *kube.Client
	known  map[string]*sparkApp
}

// sparkApp is what has been done for a driver. Each of the two steps is retried until it succeeds.
type sparkApp struct {
	plan           executorPlan
	started, ended bool
	// made has the numbers of the executors that were created.
	made map[int]bool
}

func (d *sparkDrivers) handle(ctx context.Context, driver *pod, deleted bool) error {
	m := driver.Metadata
	app := d.known[m.UID]
	if app == nil {
		app = &sparkApp{made: map[int]bool{}}
		if json.Unmarshal([]byte(m.Annotations[sparkExecutorsAnnotation]), &app.plan) != nil {
			// The pod was created by hand.
			return nil
		}
		d.known[m.UID] = app
	}
	ended := deleted || m.DeletionTimestamp != "" || driver.ended()
	var err error
	switch {
	case ended && !app.ended:
		err = d.endExecutors(ctx, driver, app.plan.Keep)
		app.ended = err == nil
	case !ended && !app.started && driver.Status.Phase == "Running":
		err = d.makeExecutors(ctx, driver, app)
		app.started = err == nil
	}
	if err != nil {
		return fmt.Errorf("driver pod %s/%s: %w", m.Namespace, m.Name, err)
	}
	if deleted {
		delete(d.known, m.UID)
	}
	return nil
}

// makeExecutors creates the missing executors while the driver runs: a real driver creates none after its end. It
// must not create an existing executor again, because a ResourceQuota counts such a pod before the API server refuses
// it, until the next sync of the quota.
func (d *sparkDrivers) makeExecutors(ctx context.Context, driver *pod, app *sparkApp) error {
	m := driver.Metadata
	var errs []error
	for number := 1; number <= app.plan.Count; number++ {
		if app.made[number] {
			continue
		}
		var now pod
		if err := d.client.Get(ctx, driver.path(), &now); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if now.Status.Phase != "Running" {
			break
		}
		err := d.client.Create(ctx, podsPath(m.Namespace), app.plan.executor(number, m.Name, m.UID))
		if err == nil || apierrors.IsAlreadyExists(err) {
			app.made[number] = true
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// endExecutors deletes the executors of a driver, or ends them and keeps their pods.
func (d *sparkDrivers) endExecutors(ctx context.Context, driver *pod, keep bool) error {
	executors, err := listPods(ctx, d.client, driver.Metadata.Namespace, map[string]string{
		sparkRoleLabel: string(sparkExecutorRole), sparkAppLabel: driver.Metadata.Labels[sparkAppLabel],
	})
	if err != nil {
		return err
	}
	end := d.client.Delete
	if keep {
		end = func(ctx context.Context, path string) error { return endPod(ctx, d.client, path, 0) }
	}
	var errs []error
	for _, executor := range executors {
		errs = append(errs, end(ctx, executor.path()))
	}
	return errors.Join(errs...)
}
