{{/*
Settings that the chart itself sets or relies on. In config, extraArgs or extraEnv they
would have no effect, or they would break probes, Services and roles.
*/}}

{{- define "kube-queue.checkSettings" -}}
{{- $path := .path -}}
{{- $fixed := concat .fixed (list
  (list "devices" "--device-classes" "set the chart's value devices.classes instead, which configures both programs")
  (list "devices" "--device-types" "set the chart's value devices.types instead, which configures both programs")
  (list "namespace" "--namespace" "remove it; the namespace is always kube-queue")
  (list "health.bindAddress" "--health-bind-address" "set ports.health instead")
  (list "metrics.bindAddress" "--metrics-bind-address" "set ports.metrics or metrics.enabled=false instead")
  (list "leaderElection.leaderElect" "--leader-elect" "remove it; two pods run during each update, and without leader election both would be active"))
-}}
{{- range $key := list "apiVersion" "kind" -}}
{{- if hasKey ($.values.config | default dict) $key -}}
{{- fail (printf "%s.config: remove apiVersion and kind; the chart sets them" $path) -}}
{{- end -}}
{{- end -}}
{{- range $fixed -}}
{{- $within := $.values.config | default dict -}}
{{- $names := splitList "." (index . 0) -}}
{{- range initial $names -}}
{{- $within = get $within . -}}
{{- if not (kindIs "map" $within) }}{{ $within = dict }}{{ end -}}
{{- end -}}
{{- if hasKey $within (last $names) -}}
{{- fail (printf "%s.config.%s: %s" $path (index . 0) (index . 2)) -}}
{{- end -}}
{{- end -}}
{{- $fixed = append $fixed (list "" "--config" (printf "set %s.config instead" $path)) -}}
{{- range $arg := $.values.extraArgs -}}
{{- $flag := splitList "=" $arg | first | replace "_" "-" -}}
{{- range $fixed -}}
{{- if eq $flag (index . 1) -}}
{{- fail (printf "%s.extraArgs: %s: %s" $path $arg (index . 2)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $variables := dict
  "QueueGroupPlugin" "controller.quotaBackend"
  "StrictPriority" "controller.policy"
  "StrictConsistency" "controller.policy"
-}}
{{- range $.values.extraEnv -}}
{{- with get $variables .name -}}
{{- fail (printf "%s.extraEnv: remove the variable and set %s instead" $path .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The quota backend, by either name of its value. */}}
{{- define "kube-queue.quotaBackend" -}}
{{- include "kube-queue.checkValues" . -}}
{{- $values := .Values.controller -}}
{{- $vendors := $values.queueGroupPlugin -}}
{{- if and $vendors (ne $values.quotaBackend "elasticquota") (ne $values.quotaBackend $vendors) -}}
{{- fail (printf "controller.quotaBackend is %s and controller.queueGroupPlugin is %s; set controller.queueGroupPlugin to \"\"" $values.quotaBackend $vendors) -}}
{{- end -}}
{{ $vendors | default $values.quotaBackend }}
{{- end -}}

{{/* The policy, by either name of its value. */}}
{{- define "kube-queue.policy" -}}
{{- include "kube-queue.checkValues" . -}}
{{- $values := .Values.controller -}}
{{- $vendors := "" -}}
{{- if $values.strictConsistency }}{{ $vendors = "Priority" }}{{ end -}}
{{- if $values.strictPriority }}{{ $vendors = "Block" }}{{ end -}}
{{- if and $vendors (ne $values.policy "RoundRobin") (ne $values.policy $vendors) -}}
{{- fail (printf "controller.policy is %s, and controller.strictPriority or controller.strictConsistency mean %s; set them to false" $values.policy $vendors) -}}
{{- end -}}
{{ $vendors | default $values.policy }}
{{- end -}}
