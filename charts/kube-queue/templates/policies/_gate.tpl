{{/*
The policies of plain pods, which have no suspend field: a marked pod waits at a scheduling gate until its quota has room.
*/}}

{{/* Whether plain pods are queued here, and whether every plain pod of a managed namespace is. */}}
{{- define "kube-queue.queuesPods" -}}
{{- if has "pod" (include "kube-queue.granted" . | fromJsonArray) }}true{{ end -}}
{{- end -}}
{{- define "kube-queue.managesPods" -}}
{{- if and (include "kube-queue.manage" .) (has "pod" (include "kube-queue.managed" . | fromJsonArray)) }}true{{ end -}}
{{- end -}}

{{/* Whether a pod has the gate, and whether it has the label of pods that had the gate when they were created. */}}
{{- define "kube-queue.celGated" -}}
{{ . }}.?spec.?schedulingGates.orValue([]).exists(g, g.?name.orValue('') == 'scheduling.x-k8s.io/kube-queue')
{{- end -}}
{{- define "kube-queue.celLabeled" -}}
{{ . }}.metadata.?labels[?'kube-queue/gated'].hasValue()
{{- end -}}

{{- define "kube-queue.celMarked" -}}
object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
{{- end -}}

{{/* Whether a pod is one of a job whose growth is gated. The release annotates the templates of such jobs. */}}
{{- define "kube-queue.celGrows" -}}
{{ . }}.metadata.?annotations[?'kube-queue/growth'].orValue('') != ''
{{- end -}}

{{- define "kube-queue.celNamesNode" -}}
object.?spec.?nodeName.orValue('') != ''
{{- end -}}

{{- define "kube-queue.celInKueue" -}}
{{ . }}.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()
{{- end -}}

{{- define "kube-queue.celBypasses" -}}
{{ . }}.metadata.?annotations[?'kube-queue/bypass'].orValue('') == 'true'
{{- end -}}

{{/* The label by which a pod that another pod controls is known as an executor of a SparkApplication. */}}
{{- define "kube-queue.executorLabel" -}}
{{- $names := include "kube-queue.granted" . | fromJsonArray -}}
{{- range include "kube-queue.kinds" . | fromJsonArray -}}
{{- if and (eq .kind "SparkApplication") (include "kube-queue.named" (list . $names)) }}{{ .podLabel.key }}{{ end -}}
{{- end -}}
{{- end -}}

{{/*
list ROOT MANAGED: the kinds whose jobs are queued here and have pods, and the kinds between such a job and its pods: JSON of
names such as rayjobs.ray.io. MANAGED "true" selects those that are managed, "false" the others, and "" both.
*/}}
{{- define "kube-queue.podControllers" -}}
{{- $root := index . 0 -}}
{{- $wanted := index . 1 -}}
{{- $granted := include "kube-queue.granted" $root | fromJsonArray -}}
{{- $managed := include "kube-queue.managed" $root | fromJsonArray -}}
{{- $kinds := include "kube-queue.kinds" $root | fromJsonArray -}}
{{- $queued := list -}}
{{- range $kinds }}{{ if include "kube-queue.named" (list . $granted) }}{{ $queued = append $queued .kind }}{{ end }}{{ end -}}
{{- $found := list -}}
{{- range $kinds -}}
{{- $controls := has .kind $queued -}}
{{- range .partOf }}{{ if has .kind $queued }}{{ $controls = true }}{{ end }}{{ end -}}
{{- $is := include "kube-queue.named" (list . $managed) | empty | ternary "false" "true" -}}
{{- if and $controls (or (not $wanted) (eq $is $wanted)) }}{{ $found = append $found (printf "%s.%s" .resource .group) }}{{ end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* list ROOT POD: the controllers of a pod that are queued jobs, or between it and a queued job, each as rayjobs.ray.io/UID. */}}
{{- define "kube-queue.celJobsOfPod" -}}
{{- $root := index . 0 -}}
{{ index . 1 }}.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))
.filter(o, o.?kind.orValue('').lowerAscii() + 's.' + o.?apiVersion.orValue('').split('/')[0] in [
  '{{ include "kube-queue.podControllers" (list $root "") | fromJsonArray | join "', '" }}']
{{- with include "kube-queue.executorLabel" $root }}
  || (o.?kind.orValue('') == 'Pod' && {{ index $ 1 }}.metadata.?labels[?'{{ . }}'].hasValue()){{ end }})
{{- end -}}

{{/*
Whether the pod is a part of a queued job, in a managed namespace whose fence denies. Anybody can write an ownerReference, so
whoever creates the pod must operate the jobs of its controller. The Job controller is a part of Kubernetes. A kind that is not
managed can be created without quota anyway. Executors of a SparkApplication are created by its driver.
*/}}
{{- define "kube-queue.celPodByOperator" -}}
object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))
.map(o, o.?kind.orValue('').lowerAscii() + 's.' + o.?apiVersion.orValue('').split('/')[0])
.exists(kind,
  {{- with include "kube-queue.podControllers" (list . "false") | fromJsonArray }}
  kind in ['{{ join "', '" . }}'] ||
  {{- end }}
  {{- $managed := include "kube-queue.podControllers" (list . "true") | fromJsonArray }}
  {{- if has "jobs.batch" $managed }}
  (kind == 'jobs.batch' && request.userInfo.?username.orValue('') in [{{ include "kube-queue.jobControllers" . }}]) ||
  {{- end }}
  (kind in ['{{ join "', '" $managed }}'{{ if include "kube-queue.executorLabel" . }}, 'pods.v1'{{ end }}]
    && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace)
      .name(kind == 'pods.v1' ? 'sparkapplications.sparkoperator.k8s.io' : kind).check('operate').allowed()))
{{- end -}}

{{/*
list ROOT WHICH: the conditions under which a new pod waits, by policy or webhook. WHICH: "" for marked pods, "true" for those of
managed namespaces, and "growth" for those of queued jobs whose growth is gated.
*/}}
{{- define "kube-queue.gateConditions" -}}
{{- $root := index . 0 -}}
{{- $managed := index . 1 -}}
{{- if eq $managed "growth" }}
- name: grows
  expression: "{{ include "kube-queue.celGrows" "object" }}"
# Only of these kinds, job-extensions opens the gates.
- name: of-a-kind-that-grows
  expression: >-
    object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)
      && o.?kind.orValue('') + '.' + o.?apiVersion.orValue('').split('/')[0] in ['Job.batch', 'RayCluster.ray.io'])
- name: no-node
  expression: "!({{ include "kube-queue.celNamesNode" $root }})"
{{- else }}
{{- if not $managed }}
- name: marked
  expression: "{{ include "kube-queue.celMarked" $root }}"
{{- end }}
{{- if and $managed (eq (include "kube-queue.fence" $root) "deny") }}
# The policy of the fence refuses those who may not.
{{- end }}
- name: no-bypass
  expression: "!({{ include "kube-queue.celBypasses" "object" }})"
- name: no-other-queue
  expression: "!{{ include "kube-queue.celInKueue" "object" }}"
# The scheduler does not see a pod with a node. The kubelet creates such pods.
- name: no-node
  expression: "!({{ include "kube-queue.celNamesNode" $root }})"
{{- if and $managed (eq (include "kube-queue.fence" $root) "deny") }}
# A part of a queued job is held through that job. Every other pod is queued, whatever
# controls it: anybody can write an ownerReference.
- name: no-part-of-a-queued-job
  expression: >-
    !{{ include "kube-queue.celPodByOperator" $root | nindent 4 | trim }}
{{- else }}
# A part of a queued job is held through that job.
- name: no-part-of-a-queued-job
  expression: >-
    {{ include "kube-queue.celJobsOfPod" (list $root "object") | nindent 4 | trim }}.size() == 0
{{- end }}
{{- end }}
{{- end -}}

{{- define "kube-queue.gateRule" -}}
- apiGroups: [""]
  apiVersions: [v1]
  operations: [CREATE]
  resources: [pods]
{{- end -}}

{{- define "kube-queue.gatePodPolicy" -}}
# Every new pod with the annotation scheduling.x-k8s.io/suspend: "true" gets a scheduling gate, and a label by which kube-queue
# finds it. The scheduler does not see the pod until kube-queue removes the gate, when its quota has room.
#
# No match condition may fail on any pod: a failure would reject pods of users who do not use kube-queue. So
# fields are read by optional chaining only.
{{ include "kube-queue.gateMutation" (list . "kube-queue-gate-pod" "") }}
{{- end -}}

{{- define "kube-queue.growthPodPolicy" -}}
# Pods of a job whose queue gates growth wait too: as many pass as the job was admitted with, without a decision.
#
# No match condition may fail on any pod.
{{ include "kube-queue.gateMutation" (list . "kube-queue-growth-pod" "growth") }}
{{- end -}}

{{- define "kube-queue.managedPodPolicy" -}}
# In a namespace with label kube-queue/managed: "true", every new pod is marked and waits for quota, unless it is a
# part of a queued job. The policy also sets the gate: a policy that did not match, because the pod was
# not marked yet, is not evaluated again.
#
# No match condition may fail on any pod, because a failure rejects the pod.
{{ include "kube-queue.gateMutation" (list . "kube-queue-managed-pod" "true") }}
  matchResources:
    namespaceSelector:
      matchLabels:
        kube-queue/managed: "true"
{{- end -}}

{{/* list ROOT NAME WHICH: a policy that sets the gate, and its binding. */}}
{{- define "kube-queue.gateMutation" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $managed := index . 2 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  # A webhook that runs later may remove the gate.
  reinvocationPolicy: IfNeeded
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    {{- include "kube-queue.gateRule" . | nindent 4 }}
  matchConditions:
  {{- include "kube-queue.gateConditions" (list $root $managed) | trim | nindent 2 }}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        {{ include "kube-queue.celGated" "object" }} ? [] : (
          object.?spec.?schedulingGates.hasValue() ? [] : [
            JSONPatch{op: 'add', path: '/spec/schedulingGates', value: []}
          ]
        ) + [
          JSONPatch{op: 'add', path: '/spec/schedulingGates/-', value: {'name': 'scheduling.x-k8s.io/kube-queue'}}
        ]
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        (object.metadata.?labels.hasValue() ? [] : [
          JSONPatch{op: 'add', path: '/metadata/labels', value: {}}
        ]) + [
          JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('kube-queue/gated'), value: 'true'}
        ]
  # A copy of a released pod is a new pod.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !object.metadata.?annotations[?'kube-queue/released'].hasValue() ? [] : [
          JSONPatch{op: 'remove', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/released')}
        ]
  {{- if eq $managed "true" }}
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        (object.metadata.?annotations.hasValue() ? [] : [
          JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}
        ]) + [
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/managed'), value: 'true'},
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('scheduling.x-k8s.io/suspend'), value: 'true'}
        ]
  {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  policyName: {{ $name }}
{{- end -}}

{{/* What protects the gate of pods, and its binding. */}}
{{- define "kube-queue.gatePolicy" -}}
# Nobody takes a pod past its gate: only kube-queue removes the gate, and changes what shows that the pod is
# queued, to which group it belongs and how it was released. Whoever has the verb bypass on queueunits in the
# namespace may do the same, for example to let the pods go after kube-queue was uninstalled.
#
# No match condition may fail on any pod.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-gate
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods]
  matchConditions:
  # Of all other pods, no more than this is evaluated.
  - name: gated-or-marked-with-a-node
    expression: >-
      ([object] + (oldObject == null ? [] : [oldObject])).exists(p,
        {{ include "kube-queue.celLabeled" "p" }} || {{ include "kube-queue.celGated" "p" }})
      || (request.operation == 'CREATE' && ({{ include "kube-queue.celGrows" "object" }}
        || ({{ include "kube-queue.celMarked" . }} && {{ include "kube-queue.celNamesNode" . }})))
  variables:
  - name: gated
    expression: >-
      {{ include "kube-queue.celGated" "object" }}
  - name: wasGated
    expression: >-
      request.operation == 'UPDATE' && {{ include "kube-queue.celGated" "oldObject" }}
  # The API server asks the authorizer only if the request would be refused otherwise.
  - name: mayRelease
    expression: >-
      request.userInfo.?username.orValue('') == '{{ include "kube-queue.jobExtensionsUser" . }}'
      || authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed()
  - name: changed
    expression: >-
      request.operation != 'UPDATE' ? [] :
        ['kube-queue/gated', 'kube-queue/pod-group'].filter(k, object.metadata.?labels[?k] != oldObject.metadata.?labels[?k]).map(k, 'label ' + k)
        + (['kube-queue/pod-group-size', 'kube-queue/released', 'kube-queue/growth'] + (variables.wasGated ? ['scheduling.x-k8s.io/suspend'] : []))
          .filter(k, object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k]).map(k, 'annotation ' + k)
  # The queued jobs, before and after an update, of which the pod is a part.
  - name: jobs
    expression: >-
      request.operation != 'UPDATE' ? [] : [
        {{- include "kube-queue.celJobsOfPod" (list . "oldObject") | nindent 8 }}.map(o, o.?uid.orValue('')),
        {{- include "kube-queue.celJobsOfPod" (list . "object") | nindent 8 }}.map(o, o.?uid.orValue(''))]
  validations:
  - expression: >-
      !(request.operation == 'CREATE' && {{ include "kube-queue.celMarked" . }} && {{ include "kube-queue.celNamesNode" . }})
      || {{ include "kube-queue.celBypasses" "object" }} || {{ include "kube-queue.celInKueue" "object" }}
      || {{ include "kube-queue.celJobsOfPod" (list . "object") | nindent 6 | trim }}.size() > 0
      || 'system:nodes' in request.userInfo.?groups.orValue([])
    message: >-
      a pod that waits for quota cannot name its node, because the scheduler would not see it; remove spec.nodeName, and use
      spec.nodeSelector or spec.affinity.nodeAffinity
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || !({{ include "kube-queue.celGrows" "object" }}) || ({{ include "kube-queue.celJobsOfPod" (list . "object") | nindent 6 | trim }}.size() > 0
        && !({{ include "kube-queue.celNamesNode" . }}))
    message: >-
      only the release of a queued job sets annotation kube-queue/growth, and its pods cannot name their node, because the scheduler
      would not see them; remove the annotation, and spec.nodeName from the template of the job
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || !variables.gated || object.metadata.?labels[?'kube-queue/pod-group'].orValue('')
        .matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')
    message: >-
      label kube-queue/pod-group must consist of lower-case letters, digits, "-" and ".", because a QueueUnit is named after it
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || (variables.gated == {{ include "kube-queue.celLabeled" "object" }}
        && (!variables.gated || {{ include "kube-queue.celMarked" . }} || {{ include "kube-queue.celGrows" "object" }}))
    message: >-
      kube-queue sets label kube-queue/gated and the scheduling gate scheduling.x-k8s.io/kube-queue, both together; remove them, and
      to queue the pod, set annotation scheduling.x-k8s.io/suspend to "true"
    reason: Forbidden
  - expression: >-
      !variables.wasGated || variables.gated || variables.mayRelease
    message: >-
      only kube-queue removes the scheduling gate scheduling.x-k8s.io/kube-queue, when the quota has room for the pod; wait, or delete the
      pod. To let it run without quota, ask somebody with the verb "bypass" on queueunits.scheduling.x-k8s.io
    reason: Forbidden
  - expression: >-
      variables.changed.size() == 0 || variables.mayRelease
    messageExpression: >-
      'only kube-queue changes ' + variables.changed.join(', ') + ' of a queued pod; delete the pod, and create it again'
    reason: Forbidden
  # The Job controller takes each pod without a controller that the selector of a Job matches. If it could not, it would do nothing
  # else for the Job. Such a pod still waits at its gate, and counts for its own unit.
  - expression: >-
      variables.jobs.size() == 0 || variables.jobs[0] == variables.jobs[1]
      || (variables.jobs[0].size() == 0 && request.userInfo.?username.orValue('') in [{{ include "kube-queue.jobControllers" . }}])
      || request.userInfo.?username.orValue('') in [{{ include "kube-queue.garbageCollectors" . }}] || variables.mayRelease
    message: >-
      a queued pod cannot become or stop being a part of a job, because its quota is charged for it; delete the pod, and create it again
    # Controllers go on if they cannot let a pod go for this reason.
    reason: Invalid
---
{{ include "kube-queue.gateBinding" . }}
{{- end -}}

{{- define "kube-queue.gateBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: kube-queue-gate
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-gate
  validationActions: [Deny]
{{- end -}}

{{/* What keeps pods from claiming that they were at the gate where pods are not queued, and its binding. */}}
{{- define "kube-queue.noGatePolicy" -}}
# A pod that was at the gate counts for the group that its label names. Pods are not queued here, so no pod was. Without
# this policy, the pods of a job could count for a group that does not exist, and not for the job.
#
# The policy has the name of the one that protects the gate, which replaces it where pods are queued.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-gate
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods]
    # Other pods cost nothing. An expression costs more than a selector: the API server converts the whole pod for it.
    objectSelector:
      matchExpressions:
      - {key: kube-queue/gated, operator: Exists}
  matchConditions:
  # Pods may be left from when pods were queued.
  - name: labeled
    expression: >-
      {{ include "kube-queue.celLabeled" "object" }} && (oldObject == null || !{{ include "kube-queue.celLabeled" "oldObject" }}
        || object.metadata.?labels[?'kube-queue/pod-group'] != oldObject.metadata.?labels[?'kube-queue/pod-group'])
  validations:
  - expression: >-
      authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed()
    message: >-
      only kube-queue sets label kube-queue/gated, and pods are not queued here; remove the label, or ask an administrator to enable
      extension pod
    reason: Forbidden
---
{{ include "kube-queue.gateBinding" . }}
{{- end -}}

{{/* What limits job-extensions to pods at the gate, and its binding. */}}
{{- define "kube-queue.jobExtensionsPodPolicy" -}}
# RBAC can only permit job-extensions to change and delete pods. This policy limits it to pods that had the gate
# when they were created, and to the release: it removes the gate and sets kube-queue/released, the
# annotations of admission checks, and the list of these. Others may write labels and annotations of their own in the same request.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-job-extensions-pods
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [UPDATE, DELETE]
      resources: [pods]
  matchConditions:
  - name: by-job-extensions
    expression: "request.userInfo.?username.orValue('') == '{{ include "kube-queue.jobExtensionsUser" . }}'"
  variables:
  - name: annotations
    expression: "request.operation == 'DELETE' ? [] : [oldObject, object].map(x, x.metadata.?annotations.orValue({}))"
  - name: labels
    expression: "request.operation == 'DELETE' ? [] : [oldObject, object].map(x, x.metadata.?labels.orValue({}))"
  - name: own
    expression: >-
      ['kube-queue/released', 'kube-queue/pod-annotations', 'autoscaling.x-k8s.io/consume-provisioning-request', 'autoscaling.x-k8s.io/provisioning-class-name',
      'cluster-autoscaler.kubernetes.io/consume-provisioning-request', 'cluster-autoscaler.kubernetes.io/provisioning-class-name']
  # The keys that must not change.
  - name: kept
    expression: >-
      (variables.annotations + variables.labels).map(keys, keys.map(k, k).filter(k, !(k in variables.own)
        && (k.contains('kube-queue') || k.contains('k8s.io/') || k.contains('kubernetes.io/') || k in {{ include "kube-queue.attributionLabels" . }})))
  validations:
  - expression: >-
      {{ include "kube-queue.celLabeled" "oldObject" }}
    message: job-extensions changes and deletes only pods with label kube-queue/gated
    reason: Forbidden
  - expression: >-
      request.operation == 'DELETE' || (
        object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
        && object.metadata.?finalizers == oldObject.metadata.?finalizers
        && (variables.kept[0] + variables.kept[1]).all(k, variables.annotations[0][?k] == variables.annotations[1][?k])
        && (variables.kept[2] + variables.kept[3]).all(k, variables.labels[0][?k] == variables.labels[1][?k]))
    message: >-
      job-extensions changes only its own annotations of a pod; if a mutating webhook or policy changes others of kube-queue or
      Kubernetes, owners or finalizers in the same request, exclude the ServiceAccount job-extensions from it
    reason: Forbidden
  - expression: >-
      request.operation == 'DELETE' || (
        object.spec.all(f, f == 'schedulingGates' || (f in oldObject.spec && object.spec[f] == oldObject.spec[f]))
        && oldObject.spec.all(f, f == 'schedulingGates' || f in object.spec)
        && oldObject.spec.?schedulingGates.orValue([]).all(g, g.name == 'scheduling.x-k8s.io/kube-queue'
          || g in object.spec.?schedulingGates.orValue([])))
    message: >-
      job-extensions removes only its own scheduling gate from the spec of a pod; if a mutating webhook or policy changes the spec in
      the same request, exclude the ServiceAccount job-extensions from it
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: kube-queue-job-extensions-pods
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-job-extensions-pods
  validationActions: [Deny]
{{- end -}}

{{/* The fence of pods in managed namespaces, and its binding. */}}
{{- define "kube-queue.fencePodPolicy" -}}
# In a namespace with label kube-queue/managed: "true", no pod runs without quota: a new pod that is no
# part of a queued job waits at the gate. Exempt are pods of the kubelet, and a pod with the annotation kube-queue/bypass: "true",
# if the user has the verb "bypass" on queueunits.
#
# No expression may fail on any pod, because a failure rejects the request.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-fence-pod
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods]
  matchConditions:
  # Of nearly all updates, no more than this is evaluated.
  - name: new-or-leaves-the-queue
    expression: >-
      request.operation == 'CREATE'
      || ({{ include "kube-queue.celInKueue" "object" }} && !{{ include "kube-queue.celInKueue" "oldObject" }})
      || ({{ include "kube-queue.celBypasses" "object" }} && !({{ include "kube-queue.celBypasses" "oldObject" }}))
  variables:
  - name: exempt
    expression: >-
      'system:nodes' in request.userInfo.?groups.orValue([])
      || {{ if eq (include "kube-queue.fence" .) "deny" }}{{ include "kube-queue.celPodByOperator" . | nindent 6 | trim }}
      {{- else }}{{ include "kube-queue.celJobsOfPod" (list . "object") | nindent 6 | trim }}.size() > 0{{ end }}
      || ({{ include "kube-queue.celBypasses" "object" }}
        && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed())
  validations:
  - expression: >-
      !{{ include "kube-queue.celInKueue" "object" }} || variables.exempt
    message: >-
      namespace is managed by kube-queue: label kueue.x-k8s.io/queue-name assigns the Pod to another queue. Remove the
      label, or use a namespace without label kube-queue/managed.
    reason: Forbidden
  - expression: >-
      !({{ include "kube-queue.celBypasses" "object" }}) || variables.exempt
    message: >-
      namespace is managed by kube-queue: the annotation kube-queue/bypass requires the verb "bypass" on
      queueunits.scheduling.x-k8s.io, which ClusterRole kube-queue-bypass has. Remove the annotation, or ask an administrator.
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.exempt || !({{ include "kube-queue.celGrows" "object" }})
    message: >-
      namespace is managed by kube-queue: only the operator of a job creates a Pod with the annotation kube-queue/growth. If it did,
      an administrator can list it (chart value managedNamespaces.operators).
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.exempt || {{ include "kube-queue.celGated" "object" }}
    message: >-
      namespace is managed by kube-queue: a new Pod waits for quota, so it cannot name its node. Remove spec.nodeName, and use
      spec.nodeSelector or spec.affinity.nodeAffinity.
    reason: Forbidden
---
{{ include "kube-queue.fenceBinding" (list . "kube-queue-fence-pod") }}
{{- end -}}
