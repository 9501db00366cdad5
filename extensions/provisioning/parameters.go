package provisioning

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// runTime is the parameter of classes that provide nodes for a limited time, in seconds.
const runTime = "maxRunDurationSeconds"

// limitsRunTime are the classes that take the parameter runTime. So does the class
// of a config that sets it.
var limitsRunTime = []string{"queued-provisioning.gke.io"}

// parametersOf returns the parameters of the request of a unit. What the job sets takes precedence over the maximum
// execution time of the unit, which takes precedence over the config.
func parametersOf(unit *v1alpha1.QueueUnit, config *v1alpha1.ProvisioningRequestConfigSpec) (map[string]string, error) {
	all := map[string]string{}
	maps.Copy(all, config.Parameters)
	_, configured := all[runTime]
	if most := unit.Spec.MaximumExecutionTimeSeconds; most != nil && (configured || slices.Contains(limitsRunTime, config.ProvisioningClassName)) {
		all[runTime] = strconv.Itoa(int(*most))
	}
	for key, value := range decision.ParametersOf(unit) {
		all[strings.TrimPrefix(key, wellknown.ParameterPrefix)] = value
	}
	if len(all) > mostParameters {
		return nil, fmt.Errorf("the ProvisioningRequest would have %d parameters, but at most %d are allowed; remove annotations %sNAME of the job",
			len(all), mostParameters, wellknown.ParameterPrefix)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(all[name]) > longestParameter {
			return nil, fmt.Errorf("the value of annotation %s%s of the job is longer than %d characters; shorten it", wellknown.ParameterPrefix, name, longestParameter)
		}
	}
	return all, nil
}
