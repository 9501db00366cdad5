package services

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
)

// serverName is the name of the image, and of the program, of the pods. The program is the test binary.
const serverName = "webhook-server"

// notReady is a file that makes a pod not ready.
const notReady = "not-ready"

// runServer is the program of the pods: a webhook server, and an endpoint for the readiness probe.
func runServer(args []string) error {
	flags := flag.NewFlagSet(serverName, flag.ContinueOnError)
	webhook := flags.String("webhook-bind-address", "", "")
	health := flags.String("health-bind-address", "", "")
	flags.String("metrics-bind-address", "", "")
	certificate := flags.String("certificate", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ended := make(chan error)
	go func() {
		ended <- http.ListenAndServe(*health, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, err := os.Stat(notReady); !errors.Is(err, os.ErrNotExist) {
				http.Error(w, "not ready", http.StatusServiceUnavailable)
			}
		}))
	}()
	server := webhookServer(os.Getenv("POD"))
	server.Addr = *webhook
	go func() { ended <- server.ListenAndServeTLS(*certificate, *certificate) }()
	return <-ended
}

// webhookServer returns a server that writes its name into the data of ConfigMaps. Each call needs a new
// connection, which can lead to another endpoint.
func webhookServer(name string) *http.Server {
	server := &http.Server{Handler: mutate(name), TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	server.SetKeepAlivesEnabled(false)
	return server
}

func mutate(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: fmt.Appendf(nil, `[{"op":"add","path":"/data","value":{"by":%q}}]`, name)}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
}
