package standin

import (
	"fmt"
	"strconv"
	"strings"
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
// larger for programs in Python or R, and a minimum.
const (
	jvmOverhead    = 0.1
	nonJVMOverhead = 0.4
	leastOverhead  = "384m"
)

// sparkResources are the resources of the container of a role.
type sparkResources struct{ requests, limits map[string]string }

// resources returns the resources of the driver or of one executor.
func (s *sparkSubmission) resources(role sparkRole) (sparkResources, error) {
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
	return r, s.addDevices(role, r.limits)
}

// addDevices adds the resources of spark.ROLE.resource.NAME.amount.
func (s *sparkSubmission) addDevices(role sparkRole, limits map[string]string) error {
	prefix := role.conf("resource.")
	for key := range s.conf.below(prefix) {
		name, is := strings.CutSuffix(key, ".amount")
		if !is {
			continue
		}
		amount, err := s.conf.whole(prefix+key, 0)
		if err != nil {
			return err
		}
		vendor := s.conf[prefix+name+".vendor"]
		if vendor == "" {
			return fmt.Errorf("%s is set, %s is not", prefix+key, prefix+name+".vendor")
		}
		limits[vendor+"/"+name] = strconv.Itoa(amount)
	}
	return nil
}

// memory returns the memory of the pod.
func (s *sparkSubmission) memory(role sparkRole) (string, error) {
	total, err := s.conf.mebibytes(role.conf("memory"), "m", "1g")
	if err != nil {
		return "", err
	}
	overhead, err := s.overhead(role, total)
	if err != nil {
		return "", err
	}
	total += overhead
	if role == sparkExecutorRole {
		extra, err := s.offHeap()
		if err != nil {
			return "", err
		}
		total += extra
	}
	return fmt.Sprintf("%dMi", total), nil
}

func (s *sparkSubmission) overhead(role sparkRole, memory int64) (int64, error) {
	if s.conf[role.conf("memoryOverhead")] != "" {
		return s.conf.mebibytes(role.conf("memoryOverhead"), "m", "")
	}
	factor, err := s.overheadFactor(role)
	if err != nil {
		return 0, err
	}
	least, err := s.conf.mebibytes(role.conf("minMemoryOverhead"), "m", leastOverhead)
	return max(int64(factor*float64(memory)), least), err
}

func (s *sparkSubmission) overheadFactor(role sparkRole) (float64, error) {
	for _, key := range []string{role.conf("memoryOverheadFactor"), "spark.kubernetes.memoryOverheadFactor"} {
		if s.conf[key] != "" {
			return s.conf.factor(key)
		}
	}
	if s.onJVM() {
		return jvmOverhead, nil
	}
	return nonJVMOverhead, nil
}

// offHeap returns the memory that only executors have: Spark's off-heap memory, and that of Python.
func (s *sparkSubmission) offHeap() (int64, error) {
	var offHeap, python int64
	var err error
	if s.conf["spark.memory.offHeap.enabled"] == "true" {
		if offHeap, err = s.conf.mebibytes("spark.memory.offHeap.size", "b", "0"); err != nil {
			return 0, err
		}
	}
	if s.python() {
		python, err = s.conf.mebibytes("spark.executor.pyspark.memory", "m", "0")
	}
	return offHeap + python, err
}
