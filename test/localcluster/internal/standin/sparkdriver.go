package standin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// SparkDriver simulates the programs in driver pods. It creates executors when their driver runs,
// and deletes them when the driver has ended or is deleted. One process serves all drivers. It
// creates each executor once: failed or deleted executors are not replaced, and dynamic allocation
// stays at its initial number.
const SparkDriver = "spark-driver"

func serveSparkDrivers(ctx context.Context, client *kube.Client, _ []string) error {
	drivers := &sparkDrivers{client: client, known: map[string]*sparkApp{}}
	followPods(ctx, client, sparkRoleLabel+"="+string(sparkDriverRole), drivers.handle)
	return nil
}

// sparkDrivers has all drivers by UID.
type sparkDrivers struct {
	client *kube.Client
	known  map[string]*sparkApp
}

// sparkApp has the data of a driver that is needed after the deletion of its pod. Each of the two
// steps is retried until it succeeds.
type sparkApp struct {
	namespace, driver, uid, id string
	keep                       bool
	started, ended             bool
	// made has the numbers of the executors that were created.
	made map[int]bool
}

func (d *sparkDrivers) handle(ctx context.Context, change kube.Change[pod]) error {
	app := d.known[change.UID]
	driver := cmp.Or(change.Object, &pod{})
	m := driver.Metadata
	var plan executorPlan
	if change.Object != nil {
		if json.Unmarshal([]byte(m.Annotations[sparkExecutorsAnnotation]), &plan) != nil {
			// The pod was created by hand.
			return nil
		}
		if app == nil {
			app = &sparkApp{namespace: m.Namespace, driver: m.Name, uid: change.UID, id: m.Labels[sparkAppLabel], keep: plan.Keep, made: map[int]bool{}}
			d.known[change.UID] = app
		}
	}
	if app == nil {
		return nil
	}
	ended := change.Deleted || m.DeletionTimestamp != "" || driver.ended()
	var err error
	switch {
	case ended && !app.ended:
		err = d.endExecutors(ctx, app)
		app.ended = err == nil
	case !ended && !app.started && driver.Status.Phase == "Running":
		err = d.makeExecutors(ctx, app, plan)
		app.started = err == nil
	}
	if err != nil {
		return fmt.Errorf("driver pod %s/%s: %w", app.namespace, app.driver, err)
	}
	if change.Deleted {
		delete(d.known, change.UID)
	}
	return nil
}

// makeExecutors creates the missing executors, as long as the driver runs: a real driver creates none after its end. It must not create an existing one again: a
// ResourceQuota counts such a pod before the API server refuses it, until the next sync of the
// quota.
func (d *sparkDrivers) makeExecutors(ctx context.Context, app *sparkApp, plan executorPlan) error {
	var errs []error
	for number := 1; number <= plan.Count; number++ {
		if app.made[number] {
			continue
		}
		var driver pod
		if err := d.client.Get(ctx, podsPath(app.namespace)+"/"+app.driver, &driver); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if driver.Status.Phase != "Running" {
			break
		}
		err := d.client.Create(ctx, podsPath(app.namespace), plan.executor(number, app.driver, app.uid))
		if err == nil || kube.Exists(err) {
			app.made[number] = true
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *sparkDrivers) endExecutors(ctx context.Context, app *sparkApp) error {
	selector := sparkRoleLabel + "=" + string(sparkExecutorRole) + "," + sparkAppLabel + "=" + app.id
	var executors struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	path := podsPath(app.namespace)
	if err := d.client.Get(ctx, path+"?"+url.Values{"labelSelector": {selector}}.Encode(), &executors); err != nil {
		return err
	}
	end := d.client.Delete
	if app.keep {
		end = func(ctx context.Context, path string) error { return endPod(ctx, d.client, path, 0) }
	}
	var errs []error
	for _, executor := range executors.Items {
		errs = append(errs, end(ctx, path+"/"+executor.Metadata.Name))
	}
	return errors.Join(errs...)
}
