// Package spark computes the pods of a Spark application: how many it starts with, and
// their requests.
//
// Three programs determine them. The operator converts the fields of an application to
// settings and passes them to spark-submit, together with those of spec.sparkConf
// (conf.go, read.go). Spark creates the driver from the settings, and the driver creates
// the executors (memory.go has their sizes, pods.go the rest). Then the operator's
// webhook adds to each pod what only fields can express (pods.go).
//
// The operator also computes figures for batch schedulers. They lack defaults of Spark, so they are not
// used; TestTheOperatorCountsTheSame lists the differences.
//
// Settings in other places, such as a ConfigMap, are not visible here. Neither are
// executors that a running application requests with sizes of their own.
//
// Invariants: a value that Spark or the webhook cannot read is an error that names the
// field and a valid value; nothing overflows.
package spark

import (
	"fmt"
	"math"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// unsetExecutors is Spark's default. If the operator's webhook runs, it has already set
// its own default, 1, in the object.
const unsetExecutors = 2

// Pods returns the pods that an application starts with, the driver first.
func Pods(spec *v1beta2.SparkApplicationSpec) ([]framework.PodSet, error) {
	var sets []framework.PodSet
	c, language := confOf(spec), languageOf(spec)
	// In the client modes the driver runs where it was submitted, not in a pod of its own.
	if !clientMode(spec) {
		template, err := driver(spec).template(c, language)
		if err != nil {
			return nil, err
		}
		sets = append(sets, framework.PodSet{Name: driverRole, Count: 1, Template: template})
	}
	count, err := executors(c)
	if err != nil {
		return nil, err
	}
	template, err := executor(spec).template(c, language)
	if err != nil {
		return nil, err
	}
	return append(sets, framework.PodSet{Name: executorRole, Count: count, Template: template}), nil
}

// LeastExecutors returns how many executors an application needs at least: all of them, or the minimum of dynamic
// allocation. The status does not show how many more Spark wants, and it may never get them.
func LeastExecutors(spec *v1beta2.SparkApplicationSpec) (int32, error) {
	c := confOf(spec)
	dynamic, err := c.on(dynamicKey)
	if err == nil && dynamic {
		return c.whole(minExecutorsKey, 0, 0)
	}
	if err != nil {
		return 0, err
	}
	return executors(c)
}

// executors returns the initial number of executors; dynamic allocation may change it.
func executors(c conf) (int32, error) {
	dynamic, err := c.on(dynamicKey)
	if err != nil {
		return 0, err
	}
	if !dynamic {
		return c.whole(instancesKey, 1, unsetExecutors)
	}
	start := int32(0)
	for _, key := range []string{instancesKey, minExecutorsKey, initialExecutorsKey} {
		number, err := c.whole(key, 0, 0)
		if err != nil {
			return 0, err
		}
		start = max(start, number)
	}
	most, err := c.whole(maxExecutorsKey, 1, math.MaxInt32)
	if err == nil && start > most {
		err = fmt.Errorf("%s is %d, but dynamic allocation starts with %d executors, which Spark rejects; raise it, or lower instances, minExecutors and initialExecutors",
			c[maxExecutorsKey].field, most, start)
	}
	return start, err
}
