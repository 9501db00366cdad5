// Package webhook serves the webhooks of a program: an HTTPS server whose certificate is in a
// Secret, and the keeper of this certificate.
//
// Terms:
//   - the Secret has the certificate that all replicas serve and, during a renewal, the next one.
//   - a configuration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration. Its
//     webhooks trust the certificates in caBundle.
//   - the keeper is the leader. It makes the certificate, and replaces it before it expires.
//
// The certificate is self-signed, so caBundle has the certificate itself. A new one is trusted before it is served: the
// keeper writes it into the Secret as the next one, then adds it to caBundle. Once the API servers have had time to
// read caBundle, the keeper makes it the present one in the Secret. Each step depends only on the objects, so another
// leader can continue.
package webhook
