{{/*
What the chart itself sets, or builds upon: said once more in config, extraArgs or extraEnv
it would not count, or the program would not be where probes, Services and roles look for it.
*/}}

{{- define "kube-queue.checkSettings" -}}
{{- $path := .path -}}
{{- $fixed := concat .fixed (list
  (list "namespace" "--namespace" "leave it out: everything is in namespace kube-queue")
  (list "health.bindAddress" "--health-bind-address" "leave it out: the probes ask port 8081")
  (list "metrics.bindAddress" "--metrics-bind-address" "leave it out: it is port 8443, and none with metrics.enabled=false")
  (list "leaderElection.leaderElect" "--leader-elect" "leave it out: two pods run at once in every update, and without a lease both would work"))
-}}
{{- range $key := list "apiVersion" "kind" -}}
{{- if hasKey $.values.config $key -}}
{{- fail (printf "%s.config: leave out apiVersion and kind, which the chart writes" $path) -}}
{{- end -}}
{{- end -}}
{{- range $fixed -}}
{{- $within := $.values.config -}}
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
  "QueueGroupPlugin" "controller.queueGroupPlugin"
  "StrictPriority" "controller.strictPriority"
  "StrictConsistency" "controller.strictConsistency"
-}}
{{- range $.values.extraEnv -}}
{{- with get $variables .name -}}
{{- fail (printf "%s.extraEnv: set %s instead of the variable" $path .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
