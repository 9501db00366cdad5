{{/*
The policy of managed namespaces that keeps what shows to which job a pod belongs, and its binding.
*/}}

{{/* The labels that name the job of an object without an owner. */}}
{{- define "kube-queue.attributionLabels" -}}
{{- $keys := list -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ $keys = append $keys .podLabel.key }}{{ end -}}
['{{ $keys | uniq | sortAlpha | join "', '" }}']
{{- end -}}

{{/*
Whether an object belongs to a queued job: an owner of it is of an API group of these, or a pod; or its labels name a
job. A Job may have the label of its pods, with its own UID.
*/}}
{{- define "kube-queue.celAttributed" -}}
(oldObject.metadata.?ownerReferences.orValue([]).exists(o, o.?kind.orValue('') == 'Pod' || o.?apiVersion.orValue('').split('/')[0] in
  ['{{ include "kube-queue.groups" . | fromJsonArray | join "', '" }}'])
|| (oldObject.metadata.?ownerReferences.orValue([]).size() == 0 && {{ include "kube-queue.attributionLabels" . }}.exists(k,
  oldObject.metadata.?labels[?k].hasValue() && oldObject.metadata.labels[k] != oldObject.metadata.?uid.orValue(''))))
{{- end -}}

{{- define "kube-queue.managedResources" -}}
{{- $names := include "kube-queue.managed" . | fromJsonArray -}}
{{- $resources := list -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ if include "kube-queue.named" (list . $names) }}{{ $resources = append $resources .resource }}{{ end }}{{ end -}}
{{- $resources | uniq | toJson -}}
{{- end -}}

{{- define "kube-queue.ownersPolicy" -}}
# In a namespace with label kube-queue/managed: "true", pods stay what their operators made them: parts of
# their job, which is charged for them. A pod belongs to its controller, or else to its only owner, or else to what
# its labels name. The same is true for the objects between a pod and its job. Without this policy, a user could
# take the pods off a running job, and its operator would create others.
#
# The controller of a job, which also decides whether the job is queued itself, is kept for the same reason.
#
# Only the Job controller adds owners: if a job is deleted, the garbage collector takes its part off it, instead of deleting the part, if that has
# another owner. Only the garbage collector removes owners. Controllers do so when labels no longer match their selectors, so
# the labels of pods of a Job, whose selector can be anything, are kept too. New labels can be added. KubeRay creates
# another pod in place of one whose labels name another group or type, which both run.
#
# No expression may fail on any object, because a failure rejects the request.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-fence-owners
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [pods]
    # What is between pods and jobs, even if it is of a kind that is not queued here.
    - apiGroups: [batch]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [jobs]
    - apiGroups: [jobset.x-k8s.io]
      apiVersions: [v1alpha2]
      operations: [UPDATE]
      resources: [jobsets]
    - apiGroups: [ray.io]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [rayclusters]
    {{- include "kube-queue.managedRules" . | replace "[CREATE, UPDATE]" "[UPDATE]" | nindent 4 }}
  matchConditions:
  # Of nearly all updates, no more than this is evaluated.
  - name: owners-or-labels-change
    expression: >-
      object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences || object.metadata.?labels != oldObject.metadata.?labels
  # Others are, for example, pods of Deployments.
  - name: queued-or-part-of-a-job
    expression: >-
      request.resource.resource in ['{{ include "kube-queue.managedResources" . | fromJsonArray | join "', '" }}']
      || {{ include "kube-queue.celAttributed" . | nindent 6 | trim }}
  variables:
  # All owners and the controllers, each with group, kind and UID: whoever changed the group first could change the
  # UID next, because the object would not seem to belong to a queued job.
  - name: owners
    expression: >-
      [oldObject, object].map(x, x.metadata.?ownerReferences.orValue([]).map(o, o.?apiVersion.orValue('').split('/')[0] + '/' + o.?kind.orValue('') + '/' + o.?uid.orValue('')))
  - name: controllers
    expression: >-
      [oldObject, object].map(x, x.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))
        .map(o, o.?apiVersion.orValue('').split('/')[0] + '/' + o.?kind.orValue('') + '/' + o.?uid.orValue('')))
  - name: attributed
    expression: >-
      {{- include "kube-queue.celAttributed" . | nindent 6 }}
  - name: byGarbageCollector
    expression: >-
      request.userInfo.?username.orValue('') in [{{ include "kube-queue.garbageCollectors" . }}]
  - name: labels
    expression: "oldObject.metadata.?labels.orValue({})"
  # The Job controller takes each pod without a controller that the selector of a Job matches. If it could not, it would do nothing
  # else for the Job.
  - name: adopted
    expression: >-
      variables.controllers[0].size() == 0 && variables.controllers[1].exists(o, o.startsWith('batch/Job/'))
      && variables.owners[0].all(o, o in variables.owners[1])
      && request.userInfo.?username.orValue('') in [{{ include "kube-queue.jobControllers" . }}]
  - name: changed
    expression: >-
      (variables.labels.map(k, k).filter(k, k in {{ include "kube-queue.attributionLabels" . }}
          || variables.controllers[0].exists(o, o.startsWith('batch/Job/')
            || o.startsWith('ray.io/RayCluster/') && k in ['ray.io/group', 'ray.io/node-type']))
        + {{ include "kube-queue.attributionLabels" . }}.filter(k, !(k in variables.labels)))
      .filter(k, object.metadata.?labels[?k] != oldObject.metadata.?labels[?k])
  - name: mayBypass
    expression: >-
      object.metadata.?annotations[?'kube-queue/bypass'].orValue('') == 'true'
      && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed()
  validations:
  - expression: >-
      (variables.controllers[0] == variables.controllers[1] && (!variables.attributed || (
        variables.controllers[0].size() > 0 ? variables.owners[1].all(o, o in variables.owners[0]) : variables.owners[0] == variables.owners[1])))
      || variables.adopted || variables.byGarbageCollector || variables.mayBypass
    messageExpression: >-
      'namespace is managed by kube-queue: the owners of a ' + object.kind + ' cannot be changed, because the quota of its controller is charged. Delete the '
      + object.kind + ' and create it again.'
    # Controllers go on if they cannot let a pod go for this reason. For another one, they would try again, and never stop their job.
    reason: Invalid
  - expression: >-
      !variables.attributed || variables.changed.size() == 0 || variables.mayBypass
    messageExpression: >-
      'namespace is managed by kube-queue: labels that show to which job a ' + object.kind + ' belongs cannot be changed: '
      + variables.changed.join(', ') + '. Leave them, or delete the ' + object.kind + '.'
    reason: Forbidden
---
{{ include "kube-queue.fenceBinding" (list . "kube-queue-fence-owners") }}
{{- end -}}
