package silence

import "fmt"

// held is what a test job has in addition to its name, in YAML.
type held struct {
	annotations, labels, spec, cpu string
	// class is the PriorityClass that the pods of a Job name.
	class string
	// unmarked jobs have no mark.
	unmarked bool
}

func (h held) metadata(name string) string {
	mark := `scheduling.x-k8s.io/suspend: "true"`
	if h.unmarked {
		mark = ""
	}
	if mark != "" && h.annotations != "" {
		mark += ", "
	}
	return fmt.Sprintf("metadata: {name: %s, annotations: {%s%s}, labels: {%s}}\n", name, mark, h.annotations, h.labels)
}

func (h held) job(name string) string {
	return "apiVersion: batch/v1\nkind: Job\n" + h.metadata(name) + fmt.Sprintf(
		"spec: {%s template: {spec: {restartPolicy: Never, priorityClassName: %q, containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]}}}\n", h.spec, h.class, h.orOne())
}

func (h held) tfJob(name string) string {
	return "apiVersion: kubeflow.org/v1\nkind: TFJob\n" + h.metadata(name) + fmt.Sprintf(
		"spec: {%s tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: busybox, resources: {requests: {cpu: %q}}}]}}}}}\n", h.spec, h.orOne())
}

func (h held) rayJob(name string) string {
	return "apiVersion: ray.io/v1\nkind: RayJob\n" + h.metadata(name) + `spec:
  entrypoint: python job.py
  rayClusterSpec:
    headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: "1"}}}]}}}
`
}

func (h held) orOne() string {
	if h.cpu == "" {
		return "1"
	}
	return h.cpu
}

// refuser is a policy that refuses a job with the label refuse=NAME if it meets a condition.
func refuser(name, condition string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-%[1]s}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [UPDATE], resources: [jobs]}]}
  matchConditions: [{name: labelled, expression: "object.metadata.?labels[?'refuse'].orValue('') == '%[1]s'"}]
  validations: [{expression: "!(%[2]s)", message: "the team of policies refuses to %[1]s jobs"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-%[1]s}
spec: {policyName: refuse-%[1]s, validationActions: [Deny]}
`, name, condition)
}

// unreachable is a webhook for updates of jobs with the label refuse=NAME. Nothing listens at its address.
func unreachable(name string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: %[1]s.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {url: "https://127.0.0.1:1/"}
  objectSelector: {matchLabels: {refuse: %[1]s}}
  rules: [{apiGroups: [batch], apiVersions: [v1], operations: [UPDATE], resources: [jobs]}]
`, name)
}
