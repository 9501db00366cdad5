package metrics

import "time"

// Webhook counts a request to a webhook and records how long the answer took.
func (r *Registry) Webhook(webhook, result string, took time.Duration) {
	r.counters[webhookRequests].WithLabelValues(webhook, result).Inc()
	r.histograms[webhookSeconds].WithLabelValues(webhook).Observe(took.Seconds())
}

// WebhookCertificateExpires records when the certificate of the webhooks expires, in seconds since 1970.
func (r *Registry) WebhookCertificateExpires(at float64) {
	r.gauges[webhookExpiry].WithLabelValues().Set(at)
}
