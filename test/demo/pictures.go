package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// plugin is the kubectl plugin.
func (e *environment) plugin() string { return filepath.Join(e.bin, "kubectl-kube_queue") }

// takePictures writes pictures of the pages of the kubectl plugin into docs/images.
func (e *environment) takePictures(ctx context.Context) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	unit, err := e.kubectlIn(ctx, "get", "queueunits", "-n", "vision", "-o", `jsonpath={.items[?(@.spec.consumerRef.name=="train-3")].metadata.name}`)
	if err != nil {
		return err
	}
	pages := map[string]string{"jobs": "/?all=1", "job": "/jobs/vision/" + unit, "quotas": "/quotas", "queues": "/queues", "queue": "/queues/company-vision", "what-if": "/what-if"}
	link, stop, err := e.web(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ctx, closeBrowser := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1100, 600))...)
	defer closeBrowser()
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	if err := chromedp.Do(ctx, chromedp.Navigate(link.String())); err != nil {
		return err
	}
	for name, path := range pages {
		if err := chromedp.Do(ctx, chromedp.Navigate("http://"+link.Host+path)); err != nil {
			return err
		}
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`document.getElementById("live")?.dataset.page === undefined || document.getElementById("connection").innerText === "Live"`)); err != nil {
			return fmt.Errorf("page %s: %w", path, err)
		}
		if name == "what-if" { // show it with an answer
			answer := chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.Click(chromedp.CSS("form button")))
			if _, err := chromedp.Run(ctx, answer); err != nil {
				return fmt.Errorf("page %s: %w", path, err)
			}
		}
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			return fmt.Errorf("page %s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(e.root, "docs", "images", "web-"+name+".png"), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// web starts the pages, and returns the link that opens them.
func (e *environment) web(ctx context.Context) (link *url.URL, stop func(), err error) {
	cmd := exec.CommandContext(ctx, e.plugin(), "web", "--no-browser", "--kubeconfig", e.cluster.Kubeconfig)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "http://") {
			link, err = url.Parse(text)
			return link, stop, err
		}
	}
	stop()
	return nil, nil, errors.New("kubectl kube-queue web printed no link")
}
