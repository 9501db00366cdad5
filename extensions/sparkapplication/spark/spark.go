// Package spark works out the pods of a Spark application: how many there are at
// the start, and what each asks for.
//
// Three have a part in it, one file each. The operator turns the fields of an
// application into settings and gives them to spark-submit, together with those
// of spec.sparkConf (conf.go, read.go). Spark makes the driver from the settings,
// and the driver the executors (memory.go has their sizes, pods.go the rest).
// Then the operator's webhook adds to each pod what only fields can say (pods.go).
//
// What the owner has set elsewhere, as in a ConfigMap, is not seen here; neither
// are executors that a running application asks for with sizes of their own.
//
// Invariant: what Spark or the webhook could not read is an error that names the
// field and says what to write; nothing wraps.
package spark

import (
	"fmt"
	"math"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// unsetExecutors is Spark's own number. Where the operator's webhook runs, it has
// written its own, 1, into the object before anybody sees it.
const unsetExecutors = 2

// Pods lists the pods that an application starts with, the driver first.
func Pods(spec *v1beta2.SparkApplicationSpec) ([]framework.PodSet, error) {
	var sets []framework.PodSet
	c, language := confOf(spec), languageOf(spec)
	// In the client modes the driver runs where it was submitted, in no pod of its own.
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

// executors is how many there are at the start; dynamic allocation may change it.
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
		err = fmt.Errorf("%s: it is %d, but dynamic allocation would start with %d executors, which Spark refuses: raise it, or lower instances, minExecutors and initialExecutors",
			c[maxExecutorsKey].field, most, start)
	}
	return start, err
}
