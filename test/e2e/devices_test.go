package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// deviceJob requests devices under a name, on nodes with these labels. No node has them, so its pod stays pending.
func deviceJob(name, resource string, count int, labels ...string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {suspend: true, template: {spec: {
		restartPolicy: Never, nodeSelector: {%s}, containers: [{name: main, image: main, resources: {limits: {%q: %d}}}]}}}}`+"\n---\n",
		name, strings.Join(labels, ", "), resource, count)
}

func TestTypesOfGPUsAreGivenOutApart(t *testing.T) {
	l := suite.Env(t, "gpus")
	controller := suite.Program(t, harness.Controller)
	extensions := suite.Program(t, harness.Extensions, "--enabled-extensions="+enabled,
		"--device-types=example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=a100:gpu/a100")
	controller.Start()
	extensions.Start()
	l.Tree(`{example.com/gpu: "10", gpu/h100: "2", gpu/a100: "4"}`)

	l.Apply(deviceJob("first", "example.com/gpu", 2, "model: h100"))
	l.WaitForPhase("Job", "first", "Dequeued")
	l.Apply(deviceJob("second", "example.com/gpu", 1, "model: h100") + deviceJob("third", "example.com/gpu", 4, "model: a100"))
	l.WaitForPhase("Job", "third", "Dequeued")
	waits := l.WaitForReason("Job", "second", wellknown.ReasonQuotaExceeded)
	if want := "insufficient gpu/h100 in quota root/team: requested 1, used 2 of max 2 (at "; !strings.HasPrefix(waits.Status.Message, want) {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Delete(harness.Jobs, "first")
	l.WaitForPhase("Job", "second", "Dequeued")
	for _, name := range []string{"second", "third"} {
		l.Delete(harness.Jobs, name)
	}
	l.ExpectFree()
}

// claimingPods are the fields of a pod that claims two devices.
const claimingPods = `restartPolicy: Never, resourceClaims: [{name: own, resourceClaimTemplateName: two}],
	containers: [{name: main, image: main, resources: {claims: [{name: own}]}}]`

// A device has several names: its class, the extended resource of its class, and claims of its class. Quota on one of
// them limits all of them, for jobs and for pods outside of the queue.
func TestADeviceIsChargedOnceByWhateverNameItIsRequested(t *testing.T) {
	const classes = "--device-classes=spelled.example.com=example.com/spelled"
	l := suite.Env(t, "spelled")
	controller := suite.Program(t, harness.Controller, classes, "--count-unqueued-pods")
	extensions := suite.Program(t, harness.Extensions, "--enabled-extensions="+enabled, classes)
	controller.Start()
	extensions.Start()
	l.Tree(`{example.com/spelled: "2"}`)
	l.Apply(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: spelled.example.com}, spec: {extendedResourceName: vendor.example.com/spelled}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: two}, spec: {spec: {devices: {requests: [{name: d, exactly: {deviceClassName: spelled.example.com, count: 2}}]}}}}
`)
	claiming := `{apiVersion: batch/v1, kind: Job, metadata: {name: claiming}, spec: {suspend: true, template: {spec: {` + claimingPods + `}}}}`
	names := map[string]string{"implicit": "deviceclass.resource.kubernetes.io/spelled.example.com", "extended": "vendor.example.com/spelled", "mapped": "example.com/spelled"}

	l.Apply(claiming)
	l.WaitForPhase("Job", "claiming", "Dequeued", "Running")
	for name, resource := range names {
		l.Apply(deviceJob(name, resource, 1) + deviceJob("large-"+name, resource, 8))
		l.WaitForReason("Job", name, wellknown.ReasonQuotaExceeded)
		l.WaitForReason("Job", "large-"+name, wellknown.ReasonExceedsMaxQuota)
	}
	l.Apply(deviceJob("unknown", "deviceclass.resource.kubernetes.io/unknown.example.com", 1))
	l.WaitForReason("Job", "unknown", wellknown.ReasonInvalidRequest)
	for name := range names {
		l.Delete(harness.Jobs, "large-"+name)
	}
	l.Delete(harness.Jobs, "unknown")
	for _, name := range []string{"extended", "mapped"} {
		l.Delete(harness.Jobs, name)
	}
	l.Delete(harness.Jobs, "claiming")
	l.WaitForPhase("Job", "implicit", "Dequeued", "Running")
	l.Delete(harness.Jobs, "implicit")
	l.ExpectFree()

	for name, pod := range map[string]string{
		"claims":   claimingPods,
		"implicit": `containers: [{name: main, image: main, resources: {limits: {deviceclass.resource.kubernetes.io/spelled.example.com: 2}}}]`,
		"extended": `containers: [{name: main, image: main, resources: {limits: {vendor.example.com/spelled: 2}}}]`,
	} {
		l.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s}}`, name, pod))
		harness.Eventually(t, time.Minute, "the pod "+name+" is charged", func() (bool, string) {
			free, why := l.Free()
			return !free, why
		})
		l.Apply(deviceJob("beside-"+name, "example.com/spelled", 1))
		waits := l.WaitForReason("Job", "beside-"+name, wellknown.ReasonQuotaExceeded)
		if want := "insufficient example.com/spelled in quota root/team: requested 1, used 2 of max 2 (2 by pods outside of the queue) (at "; !strings.HasPrefix(waits.Status.Message, want) {
			t.Errorf("beside a pod that %s the message is %q, want %q", name, waits.Status.Message, want)
		}
		l.Delete(harness.Pods, name)
		l.WaitForPhase("Job", "beside-"+name, "Dequeued", "Running")
		l.Delete(harness.Jobs, "beside-"+name)
		l.ExpectFree()
	}
}
