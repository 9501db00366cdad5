package resourcequota

import (
	"fmt"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// The API server counts a claim under each name of its class (Kubernetes 1.36 and later). So does kube-queue, so that
// jobs wait for the quota, and get it back.
func TestAQuotaOnOneNameOfADeviceLimitsAll(t *testing.T) {
	const class, resource = "counted.example.com", "example.com/counted"
	for i, key := range []string{"requests." + resource, "requests.deviceclass.resource.kubernetes.io/" + class, class + ".deviceclass.resource.k8s.io/devices"} {
		l := newEnv(t, fmt.Sprint("devices-", i))
		l.Apply(quota("gpus", key+": 2") + `---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: ` + class + `}, spec: {extendedResourceName: ` + resource + `}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: two}, spec: {spec: {devices: {requests: [{name: d, exactly: {deviceClassName: ` + class + `, count: 2}}]}}}}
`)
		waitForStatus(t, l)
		controller := suite.Program(t, harness.Controller, "--device-classes="+class+"="+resource)
		controller.Env = byResourceQuota
		extensions := suite.Program(t, harness.Extensions, "--enabled-extensions="+enabled, "--device-classes="+class+"="+resource)
		controller.Start()
		extensions.Start()

		l.Apply(`{apiVersion: batch/v1, kind: Job, metadata: {name: claiming}, spec: {suspend: true, template: {spec: {restartPolicy: Never,
			resourceClaims: [{name: own, resourceClaimTemplateName: two}], containers: [{name: main, image: main, resources: {claims: [{name: own}]}}]}}}}`)
		l.WaitForPhase("Job", "claiming", "Dequeued", "Running")
		for name, spelling := range map[string]string{"implicit": "deviceclass.resource.kubernetes.io/" + class, "extended": resource} {
			one := pods{count: 1, container: container{requests: spelling + ": 1", limits: spelling + ": 1"}}
			l.Apply(job(name, one))
			waits(t, l, "Job", name, wellknown.ReasonQuotaExceeded, "ResourceQuota "+l.Namespace+"/gpus", "requested 1", "used or reserved 2 of hard limit 2")
		}
		l.Delete(harness.Jobs, "claiming")
		for _, name := range []string{"implicit", "extended"} {
			l.WaitForPhase("Job", name, "Dequeued", "Running")
		}
		for _, name := range []string{"implicit", "extended"} {
			l.Delete(harness.Jobs, name)
		}
		controller.Stop()
		extensions.Stop()
	}
}
