{{- define "gangway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* 50 characters, so that "-redis" and the suffixes of pods fit into a name of 63. */}}
{{- define "gangway.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "gangway.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "gangway.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The labels that select the gateways. They cannot change after the installation. */}}
{{- define "gangway.selector" -}}
app.kubernetes.io/name: {{ include "gangway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "gangway.redisSelector" -}}
app.kubernetes.io/name: {{ include "gangway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: redis
{{- end }}

{{- define "gangway.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gangway.image" -}}
{{- $name := printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $name .Values.image.digest }}{{ else }}{{ $name }}{{ end }}
{{- end }}

{{- define "gangway.hasRedis" -}}
{{- if or .Values.redis.enabled .Values.redis.url .Values.redis.existingSecret }}true{{ end }}
{{- end }}

{{/* The path of the only server, or of the first one. */}}
{{- define "gangway.examplePath" -}}
{{- if gt (len .Values.servers) 1 }}/{{ keys .Values.servers | sortAlpha | first }}{{ end }}/mcp
{{- end }}

{{/* Settings that contradict each other. The schema checks each value alone. */}}
{{- define "gangway.check" -}}
{{- $redis := .Values.redis }}
{{- if and $redis.enabled (or $redis.url $redis.existingSecret) }}
{{- fail "redis.enabled installs a Redis, and redis.url or redis.existingSecret names another one. Set redis.enabled to false, or remove the other value." }}
{{- end }}
{{- if and $redis.url $redis.existingSecret }}
{{- fail "redis.url and redis.existingSecret both name a Redis. Remove one of them." }}
{{- end }}
{{- if and (not (include "gangway.hasRedis" .)) (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) }}
{{- fail "Several gateways need a Redis that they share. Set redis.enabled, redis.url or redis.existingSecret, or set replicaCount to 1 and autoscaling.enabled to false." }}
{{- end }}
{{- if and .Values.metrics.podMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "metrics.podMonitor.enabled needs metrics.enabled: without it, the gateways open no port for metrics." }}
{{- end }}
{{- if and .Values.route.enabled (not .Values.route.parentRefs) }}
{{- fail "route.enabled needs route.parentRefs: the Gateway that the route belongs to." }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.enabled needs ingress.hosts: the host names that clients use." }}
{{- end }}
{{- if hasKey .Values.config "mcpServers" }}
{{- fail "config.mcpServers is not used. Put the servers into the value servers." }}
{{- end }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas must not be larger than autoscaling.maxReplicas." }}
{{- end }}
{{- end }}

{{/* The configuration file. The value config takes precedence, member by member. */}}
{{- define "gangway.config" -}}
{{- $name := include "gangway.fullname" . }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) "localhost" "127.0.0.1" }}
{{- if .Values.ingress.enabled }}{{ $hosts = concat $hosts .Values.ingress.hosts }}{{ end }}
{{- if .Values.route.enabled }}{{ $hosts = concat $hosts .Values.route.hostnames }}{{ end }}
{{- $own := dict "listen" (dict "allowedHosts" (concat $hosts .Values.allowedHosts | uniq)) "timeouts" (dict "drain" (printf "%ds" (int .Values.drainSeconds))) }}
{{- if include "gangway.hasRedis" . }}
{{- $redis := default (printf "redis://%s-redis:6379" $name) .Values.redis.url }}
{{- if .Values.redis.existingSecret }}{{ $redis = "${file:/etc/mcp-gangway-redis/redis-url}" }}{{ end }}
{{- $_ := set $own "cluster" (dict "redis" $redis "link" (dict "host" "0.0.0.0" "port" (int .Values.link.port))) }}
{{- end }}
{{- if .Values.auth.existingSecret }}
{{- $_ := set $own "auth" (dict "required" true "apiKeysFile" (printf "/etc/mcp-gangway-secret/%s" .Values.auth.key)) }}
{{- end }}
{{- $servers := dict }}
{{- range $server, $entry := .Values.servers }}
{{- /* A text is a package or a command, with its arguments. */}}
{{- if kindIs "string" $entry }}{{ $entry = dict "command" $entry }}{{ end }}
{{- $_ := set $servers $server $entry }}
{{- end }}
{{- $_ := set $own "mcpServers" (default (dict "everything" (dict "command" "@modelcontextprotocol/server-everything" "warm" 1)) $servers) }}
{{- mergeOverwrite $own (deepCopy .Values.config) | toPrettyJson }}
{{- end }}
