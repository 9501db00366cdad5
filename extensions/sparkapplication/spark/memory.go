package spark

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// In MiB, as Spark counts.
const (
	unsetMemory   = 1024
	unsetOverhead = 384
	mostMemory    = math.MaxInt64 >> 20
)

// language determines the memory in addition to the Java heap.
type language int

const (
	inJava language = iota
	inPython
	inR
)

// languageOf uses the name of the file, as spark-submit does, because the operator does
// not pass the type to Spark. In the client modes the driver cannot detect the language
// and assumes Java.
func languageOf(spec *v1beta2.SparkApplicationSpec) language {
	file := ptr.Deref(spec.MainApplicationFile, "")
	switch {
	case clientMode(spec):
		return inJava
	case strings.HasSuffix(file, ".py"), file == "" && spec.Type == v1beta2.SparkApplicationTypePython:
		return inPython
	case strings.HasSuffix(strings.ToLower(file), ".r"), file == "" && spec.Type == v1beta2.SparkApplicationTypeR:
		return inR
	}
	return inJava
}

func clientMode(spec *v1beta2.SparkApplicationSpec) bool {
	return spec.Mode == v1beta2.DeployModeClient || spec.Mode == v1beta2.DeployModeInClusterClient
}

// memory returns the memory of a pod of the role. Each part is in whole MiB.
func (r role) memory(c conf, language language) (resource.Quantity, error) {
	heap, err := c.positive(mib, unsetMemory, "spark."+r.name+".memory")
	if err != nil {
		return resource.Quantity{}, err
	}
	overhead, err := r.overhead(c, language, heap)
	if err != nil {
		return resource.Quantity{}, err
	}
	other := int64(0)
	if r.name == executorRole {
		if other, err = otherMemory(c, language); err != nil {
			return resource.Quantity{}, err
		}
	}
	// No part exceeds 2^43 MiB, so the sum cannot overflow.
	total := heap + overhead + other
	if total > mostMemory {
		return resource.Quantity{}, fmt.Errorf("spec.%s: memory and its overhead exceed the maximum of %d MiB; reduce them", r.name, mostMemory)
	}
	return *resource.NewQuantity(total<<20, resource.BinarySI), nil
}

// overhead returns the configured overhead, or a fraction of the heap but at least a
// minimum, which is configurable in Spark 4.
func (r role) overhead(c conf, language language, heap int64) (int64, error) {
	spark := "spark." + r.name + "."
	overhead, given, err := c.size(mib, spark+"memoryOverhead", "spark.yarn."+r.name+".memoryOverhead")
	if given {
		return overhead, err
	}
	usual := 0.1
	if language != inJava {
		usual = 0.4
	}
	factor, err := c.factor(usual, spark+"memoryOverheadFactor", overheadFactorKey)
	if err != nil {
		return 0, err
	}
	least, given, err := c.size(mib, spark+"minMemoryOverhead")
	if err != nil {
		return 0, err
	}
	if !given {
		least = unsetOverhead
	}
	// Spark has the same maximum.
	part := min(factor*float64(heap), math.MaxInt32)
	return max(int64(part), least), nil
}

// otherMemory returns the additional memory of executors: off-heap memory, and the memory
// of Python processes if a limit is set for it.
func otherMemory(c conf, language language) (int64, error) {
	on, err := c.on("spark.memory.offHeap.enabled", "spark.unsafe.offHeap")
	if err != nil {
		return 0, err
	}
	total := int64(0)
	if on {
		offHeap, _, err := c.size(bytes, "spark.memory.offHeap.size")
		if err != nil {
			return 0, err
		}
		total += offHeap >> 20
	}
	if language == inPython {
		limit, _, err := c.size(mib, "spark.executor.pyspark.memory")
		if err != nil {
			return 0, err
		}
		total += limit
	}
	return total, nil
}

// javaUnit matches the unit of a size in Java notation.
var javaUnit = regexp.MustCompile(`[kmgtp]b?$`)

// memoryLimit reads a limit as the webhook does: in Java notation if the unit is a
// lowercase Java unit, otherwise in Kubernetes notation.
func memoryLimit(text string) (resource.Quantity, error) {
	kubernetes := text
	if unit := javaUnit.FindString(text); unit != "" {
		kubernetes = strings.TrimSuffix(text, unit) + strings.ToUpper(unit[:1]) + "i"
	}
	limit, err := parseQuantity(kubernetes)
	// The webhook misreads uppercase Java units.
	if err != nil || limit.Sign() < 0 || kubernetes == text && javaUnit.MatchString(strings.ToLower(text)) {
		return limit, fmt.Errorf("%q is not a valid size; write, for example, 2g or 2Gi", text)
	}
	return limit, nil
}
