package clustertest

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Namespace is the namespace of kube-queue.
const Namespace = "kube-queue"

// tokenSeconds is the lifetime of tokens. It is longer than any test.
const tokenSeconds = 24 * 60 * 60

// ServiceAccountConfig returns a REST config, and a kubeconfig file for programs, with the rights
// of a ServiceAccount in kube-queue's namespace.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, name string) (config *rest.Config, kubeconfig string, err error) {
	token, err := c.serviceAccountToken(ctx, name)
	if err != nil {
		return nil, "", err
	}
	config = rest.AnonymousClientConfig(c.admin)
	config.BearerToken = token
	kubeconfig = filepath.Join(c.Data, name+".kubeconfig")
	return config, kubeconfig, c.writeKubeconfig(kubeconfig, name, token)
}

// WriteKubeconfig writes a kubeconfig of a ServiceAccount with a new token. The audit log
// distinguishes processes of a program by their tokens.
func (c *Cluster) WriteKubeconfig(ctx context.Context, name, file string) error {
	token, err := c.serviceAccountToken(ctx, name)
	if err != nil {
		return err
	}
	return c.writeKubeconfig(file, name, token)
}

func (c *Cluster) serviceAccountToken(ctx context.Context, name string) (string, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return "", err
	}
	token, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s: %w", name, err)
	}
	return token.Status.Token, nil
}

func (c *Cluster) writeKubeconfig(file, name, token string) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"local": {
			Server: c.admin.Host, CertificateAuthority: c.admin.CAFile, CertificateAuthorityData: c.admin.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"local": {Cluster: "local", AuthInfo: name, Namespace: Namespace}},
		CurrentContext: "local",
	}, file)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig of ServiceAccount %s: %w", name, err)
	}
	return nil
}
