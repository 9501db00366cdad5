package standin

import (
	"fmt"
	"regexp"
	"strconv"
)

// sparkRole is driver or executor, as in the names of properties.
type sparkRole string

const (
	sparkDriverRole   sparkRole = "driver"
	sparkExecutorRole sparkRole = "executor"
)

func (r sparkRole) conf(name string) string { return "spark." + string(r) + "." + name }
func (r sparkRole) kubernetes(name string) string {
	return "spark.kubernetes." + string(r) + "." + name
}

// The memory that Spark adds for use outside of the JVM: a fraction of the JVM's memory, which is
// larger for programs in Python or R, and a minimum in MiB.
const (
	jvmOverhead    = 0.1
	nonJVMOverhead = 0.4
	leastOverhead  = 384
)

// notSimulated matches other properties that change the resources of pods. An application with one of them is
// refused, because its pods would differ from Spark's.
var notSimulated = regexp.MustCompile(`^spark\.(` +
	`(kubernetes|driver|executor)\.(memoryOverheadFactor|minMemoryOverhead|resource\..+|pyspark\.memory)|` +
	`memory\.offHeap\..+)$`)

// sparkResources are the resources of the container of a role.
type sparkResources struct{ requests, limits map[string]string }

// resources returns the resources of the driver or of one executor.
func (s *sparkSubmission) resources(role sparkRole) (sparkResources, error) {
	for key := range s.conf {
		if notSimulated.MatchString(key) {
			return sparkResources{}, fmt.Errorf("%s is set: the simulated spark-submit does not support it", key)
		}
	}
	cores, err := s.conf.whole(role.conf("cores"), 1)
	if err != nil {
		return sparkResources{}, err
	}
	memory, err := s.memory(role)
	if err != nil {
		return sparkResources{}, err
	}
	r := sparkResources{
		requests: map[string]string{"cpu": strconv.Itoa(cores), "memory": memory},
		limits:   map[string]string{"memory": memory},
	}
	if request := s.conf[role.kubernetes("request.cores")]; request != "" {
		r.requests["cpu"] = request
	}
	if limit := s.conf[role.kubernetes("limit.cores")]; limit != "" {
		r.limits["cpu"] = limit
	}
	return r, nil
}

// memory returns the memory of the pod.
func (s *sparkSubmission) memory(role sparkRole) (string, error) {
	memory, err := s.conf.mebibytes(role.conf("memory"), 1024)
	if err != nil {
		return "", err
	}
	factor := nonJVMOverhead
	if s.onJVM() {
		factor = jvmOverhead
	}
	overhead, err := s.conf.mebibytes(role.conf("memoryOverhead"), max(int64(factor*float64(memory)), leastOverhead))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%dMi", memory+overhead), nil
}
