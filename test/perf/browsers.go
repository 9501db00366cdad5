package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
)

const (
	// mostBrowsers is how many browsers have pages open at the same time, and stays how long each keeps a page open.
	mostBrowsers, stays = 50, 15 * time.Second
	// longestPage is the target for the time until the first byte of a page.
	longestPage = time.Second
)

// browsers look at the pages of the kubectl plugin.
type browsers struct {
	client *http.Client
	base   string

	mutex        sync.Mutex
	took         rig.Durations
	failed, late int
}

// link is what the plugin prints.
var link = regexp.MustCompile(`(http://[^/\s]+)/\S+`)

// rest is how long a browser waits until it follows a page. Pages without it are not followed.
var rest = regexp.MustCompile(`data-rest="(\d+)"`)

// openBrowsers starts the plugin.
func (r *reviewsRun) openBrowsers(ctx context.Context) (*browsers, error) {
	p, err := r.LaunchPlugin("web", "web", "--no-browser")
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	b := &browsers{client: &http.Client{Jar: jar, Transport: &http.Transport{MaxConnsPerHost: 0, MaxIdleConnsPerHost: mostBrowsers}}}
	if err != nil {
		return nil, err
	}
	return b, rig.Until(ctx, 100*time.Millisecond, time.Minute, fmt.Errorf("no link in %s", p.Log), func(ctx context.Context) (bool, error) {
		text, err := os.ReadFile(p.Log)
		found := link.FindSubmatch(text)
		if err != nil || found == nil {
			return false, err
		}
		b.base = string(found[1])
		return true, b.read(ctx, string(found[0]), io.Discard)
	})
}

// read reads a page into a buffer.
func (b *browsers) read(ctx context.Context, page string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("page %s: %s", page, response.Status)
	}
	_, err = io.Copy(into, response.Body)
	return err
}

// look opens pages in turn and follows each for a while, until looking is done. People do not open their browsers at the
// same instant, so the first pages are spread over the time for which each is followed.
func (b *browsers) look(ctx, looking context.Context, pages []string, first int, say func(string, ...any)) error {
	waiting, arrive := context.WithTimeout(looking, stays*time.Duration(first)/mostBrowsers)
	<-waiting.Done()
	arrive()
	for n := first; looking.Err() == nil; n++ {
		page := pages[n%len(pages)]
		var text bytes.Buffer
		began := time.Now()
		err := b.read(ctx, b.base+page, &text)
		took := time.Since(began)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.mutex.Lock()
		if err != nil {
			b.failed++
			say("%v", err)
		} else if b.took = append(b.took, took); took > longestPage {
			b.late++
		}
		b.mutex.Unlock()
		following, cancel := context.WithTimeout(looking, stays)
		if found := rest.FindSubmatch(text.Bytes()); found != nil {
			milliseconds, _ := strconv.Atoi(string(found[1]))
			waiting, follow := context.WithTimeout(following, time.Duration(milliseconds)*time.Millisecond)
			<-waiting.Done()
			follow()
			_ = b.read(following, b.base+"/live?page="+url.QueryEscape(page), io.Discard) // it may fail: a user may open only so many streams
		}
		<-following.Done()
		cancel()
	}
	return nil
}
