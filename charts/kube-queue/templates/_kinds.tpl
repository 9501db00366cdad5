{{/*
The kinds of job, by their names in enabledExtensions. Templates that answer yes or no
return "true" or nothing, lists return JSON.
*/}}

{{- define "kube-queue.allExtensions" -}}
["tfjob","pytorchjob","mpiv1","mpiv2beta1","sparkapp","job","jobset","rayjob","raycluster","workflow"]
{{- end -}}

{{/* Of two names for the same kind the first, each once. */}}
{{- define "kube-queue.canonical" -}}
{{- $names := list -}}
{{- range . -}}
{{- $names = append $names (eq . "rayjobv1alpha1" | ternary "rayjob" .) -}}
{{- end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{- define "kube-queue.enabled" -}}
{{- include "kube-queue.canonical" .Values.enabledExtensions -}}
{{- end -}}

{{/* The kinds that job-extensions gets rights for, and that have hold policies. */}}
{{- define "kube-queue.granted" -}}
{{- if eq .Values.rbac.grant "all" -}}
{{- include "kube-queue.allExtensions" . -}}
{{- else -}}
{{- include "kube-queue.enabled" . -}}
{{- end -}}
{{- end -}}

{{/* list ROOT BACKEND: whether the controller gets the rights of a quota backend. */}}
{{- define "kube-queue.backend" -}}
{{- $values := (index . 0).Values -}}
{{- if or (eq $values.rbac.grant "all") (eq (lower $values.controller.queueGroupPlugin) (index . 1)) }}true{{ end -}}
{{- end -}}

{{/*
list ROOT WANTED KIND MINOR: whether a policy of this kind is wanted: yes, no, or auto, if
the API server has it. What kinds there are only a cluster tells; without one, as in helm
template, it goes by the minor version of Kubernetes that has it first.
*/}}
{{- define "kube-queue.policies" -}}
{{- $capabilities := (index . 0).Capabilities -}}
{{- $wanted := index . 1 -}}
{{- if eq (toString $wanted) "auto" -}}
{{- $wanted = $capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/v1/%s" (index . 2)) -}}
{{- if not ($capabilities.APIVersions.Has "apps/v1/Deployment") -}}
{{- $wanted = or $wanted (semverCompare (printf ">= 1.%d.0-0" (index . 3)) $capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- if $wanted }}true{{ end -}}
{{- end -}}

{{/* Whether the API server can hold jobs. */}}
{{- define "kube-queue.canHold" -}}
{{- include "kube-queue.policies" (list . .Values.holdPolicies.enabled "MutatingAdmissionPolicy" 36) -}}
{{- end -}}

{{- define "kube-queue.guardUnits" -}}
{{- include "kube-queue.policies" (list . .Values.unitPolicy.enabled "ValidatingAdmissionPolicy" 30) -}}
{{- end -}}

{{/* list ROOT EXTENSION...: whether jobs of any of these are held by a policy. */}}
{{- define "kube-queue.hold" -}}
{{- $root := index . 0 -}}
{{- $granted := include "kube-queue.granted" $root | fromJsonArray -}}
{{- if include "kube-queue.canHold" $root -}}
{{- range rest . }}{{ if has . $granted }}true{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The versions of MPIJob that are held, as a YAML list. */}}
{{- define "kube-queue.mpiVersions" -}}
{{- $granted := include "kube-queue.granted" . | fromJsonArray -}}
{{- $versions := list -}}
{{- if has "mpiv1" $granted }}{{ $versions = append $versions "v1" }}{{ end -}}
{{- if has "mpiv2beta1" $granted }}{{ $versions = append $versions "v2beta1" }}{{ end -}}
[{{ join ", " $versions }}]
{{- end -}}

{{/* The kinds that are queued without a mark in a managed namespace. */}}
{{- define "kube-queue.managed" -}}
{{- $enabled := include "kube-queue.enabled" . | fromJsonArray -}}
{{- $kinds := include "kube-queue.canonical" .Values.managedNamespaces.kinds | fromJsonArray -}}
{{- range $kinds -}}
{{- if not (has . $enabled) -}}
{{- fail (printf "managedNamespaces.kinds: %s is not in enabledExtensions: jobs of this kind would wait for ever in a managed namespace. Enable it, or take it out." .) -}}
{{- end -}}
{{- end -}}
{{- $kinds | default $enabled | toJson -}}
{{- end -}}

{{- define "kube-queue.manage" -}}
{{- if and .Values.managedNamespaces.enabled (include "kube-queue.canHold" .) (include "kube-queue.managed" . | fromJsonArray) }}true{{ end -}}
{{- end -}}

{{/* list RESOURCE-BY-EXTENSION... : the resources of those that are in the list. */}}
{{- define "kube-queue.resources" -}}
{{- $kinds := index . 0 -}}
{{- $found := list -}}
{{- range rest . -}}
{{- if has (index . 0) $kinds }}{{ $found = append $found (index . 1) }}{{ end -}}
{{- end -}}
{{- $found | join ", " -}}
{{- end -}}

{{- define "kube-queue.managedRules" -}}
{{- $kinds := include "kube-queue.managed" . | fromJsonArray -}}
{{- $rules := list
  (list "batch" "v1" (include "kube-queue.resources" (list $kinds (list "job" "jobs"))))
  (list "kubeflow.org" "v1" (include "kube-queue.resources" (list $kinds (list "tfjob" "tfjobs") (list "pytorchjob" "pytorchjobs") (list "mpiv1" "mpijobs"))))
  (list "kubeflow.org" "v2beta1" (include "kube-queue.resources" (list $kinds (list "mpiv2beta1" "mpijobs"))))
  (list "sparkoperator.k8s.io" "v1beta2" (include "kube-queue.resources" (list $kinds (list "sparkapp" "sparkapplications"))))
  (list "ray.io" "v1, v1alpha1" (include "kube-queue.resources" (list $kinds (list "rayjob" "rayjobs") (list "raycluster" "rayclusters"))))
  (list "jobset.x-k8s.io" "v1alpha2" (include "kube-queue.resources" (list $kinds (list "jobset" "jobsets"))))
  (list "argoproj.io" "v1alpha1" (include "kube-queue.resources" (list $kinds (list "workflow" "workflows"))))
-}}
{{- $lines := list -}}
{{- range $rules -}}
{{- if index . 2 -}}
{{- $lines = append $lines (printf "- apiGroups: [%s]\n  apiVersions: [%s]\n  operations: [CREATE]\n  resources: [%s]" (index . 0) (index . 1) (index . 2)) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* The rights of job-extensions on jobs. */}}
{{- define "kube-queue.kindRules" -}}
{{- $kinds := include "kube-queue.granted" . | fromJsonArray }}
{{- if $kinds }}
# The jobs of each framework; one whose state shows in a condition of the job
# needs its status too.
{{- end }}
{{- if has "job" $kinds }}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, patch]
{{- end }}
{{- $mpi := or (has "mpiv1" $kinds) (has "mpiv2beta1" $kinds) | ternary "mpi" "none" }}
{{- $kubeflow := append $kinds $mpi }}
{{- with include "kube-queue.resources" (list $kubeflow (list "tfjob" "tfjobs") (list "pytorchjob" "pytorchjobs") (list "mpi" "mpijobs")) }}
- apiGroups: [kubeflow.org]
  resources: [{{ . }}]
  verbs: [get, list, watch, patch]
- apiGroups: [kubeflow.org]
  resources: [{{ . | replace "," "/status," }}/status]
  verbs: [patch]
{{- end }}
{{- if has "sparkapp" $kinds }}
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, watch, patch]
{{- end }}
{{- with include "kube-queue.resources" (list $kinds (list "rayjob" "rayjobs") (list "raycluster" "rayclusters")) }}
- apiGroups: [ray.io]
  resources: [{{ . }}]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if and (has "rayjob" $kinds) (not (has "raycluster" $kinds)) }}
# A RayJob's quota is free when its cluster is gone.
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [list, watch]
{{- end }}
{{- if has "jobset" $kinds }}
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if has "workflow" $kinds }}
- apiGroups: [argoproj.io]
  resources: [workflows]
  verbs: [get, list, watch, patch]
{{- end }}
{{- end -}}
