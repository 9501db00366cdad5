package web

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"kube-queue.dev/kube-queue/test/require"
)

// visit starts Chromium on the pages of a cluster. Any output on its console fails the test.
func visit(t *testing.T, c *cluster) (ctx context.Context, b *browser) {
	t.Helper()
	if !slices.ContainsFunc([]string{"chromium", "chromium-browser", "google-chrome"}, func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		t.Skip("NOT RUN: there is no Chromium on the PATH; on Debian, apt-get install chromium")
	}
	b = serve(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, closeBrowser := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	t.Cleanup(closeBrowser)
	ctx, closeTab := chromedp.NewContext(ctx)
	do(t, ctx) // Console does not report that the browser does not start, and chromedp panics at the next attempt
	console := chromedp.Console(ctx)
	t.Cleanup(func() {
		closeTab()
		for message, err := range console {
			if err != nil {
				break
			}
			t.Errorf("the console shows %s", message)
		}
	})
	do(t, ctx, chromedp.Navigate(b.server.Link("/")))
	return ctx, b
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, actions...))
}

// click clicks on a link or a button, and waits for the page that follows.
func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	for {
		_, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.Click(chromedp.CSS(selector))))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Could not find node") { // the page was updated between the search and the click
			t.Fatalf("%s: %v", selector, err)
		}
	}
}

// evaluate returns the value of an expression of the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return value
}

// until waits until an expression of the page is true.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression))
	for err != nil && strings.Contains(err.Error(), "Cannot find context") { // another page is being loaded
		_, err = chromedp.Run(ctx, chromedp.Poll[bool](expression))
	}
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

func TestAUserFindsInTwoClicksWhyAJobWaits(t *testing.T) {
	c := &cluster{name: "train-a"}
	ctx, _ := visit(t, c)
	click(t, ctx, "nav li:first-child a")
	click(t, ctx, "tbody th a")
	until(t, ctx, `document.querySelector("h1").innerText === "train-a train-a" && document.querySelector(".verdict").innerText.startsWith("It waits: QuotaExceeded")`)
}

func TestAPageShowsAReleaseWithoutAReload(t *testing.T) {
	c := &cluster{name: "train-a", refresh: time.Second}
	ctx, _ := visit(t, c)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`window.loadedOnce = true; document.querySelector("tbody tr:last-child a").focus()`))
	until(t, ctx, `document.getElementById("connection").innerText === "Live"`)
	began := time.Now()
	c.changes.Add(5)
	until(t, ctx, `document.querySelector("tbody tr:last-child td").innerText === "7"`)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the release is shown after %v", took)
	}
	if !evaluate[bool](t, ctx, `window.loadedOnce && document.activeElement === document.querySelector("tbody tr:last-child a")`) {
		t.Error("the page was loaded again, or the focus is on another link")
	}
}

// After an HTTP error, such as from a proxy whose server restarts, the browser does not reconnect by itself.
func TestAPageConnectsAgainAfterAnHTTPError(t *testing.T) {
	c := &cluster{name: "train-a", proxy: &proxy{}}
	ctx, _ := visit(t, c)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`window.loadedOnce = true`))
	until(t, ctx, `document.getElementById("connection").innerText === "Live"`)
	c.proxy.set(true)
	until(t, ctx, `source === undefined && document.getElementById("connection").innerText.startsWith("Disconnected")`)
	c.changes.Add(5)
	c.proxy.set(false)
	until(t, ctx, `document.getElementById("connection").innerText === "Live" && document.querySelector("tbody tr:last-child td").innerText === "7"`)
	if !evaluate[bool](t, ctx, `window.loadedOnce`) {
		t.Error("the page was loaded again")
	}
}

func TestAPageThatHasFailedIsLoadedAgainWhenItCanBeRead(t *testing.T) {
	c := &cluster{name: "train-a"}
	ctx, b := visit(t, c)
	do(t, ctx, chromedp.Navigate(b.url+"/jobs/research/nobody"))
	until(t, ctx, `document.querySelector("h1").innerText === "This page cannot be shown"`)
	succeed := func(context.Context, *chromedp.Target) (int32, error) { return c.changes.Add(5), nil }
	_, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, succeed))
	require.NoError(t, err)
	until(t, ctx, `document.querySelector("h1").innerText === "train-a train-a"`)
}

func TestATreeIsTriedInTheForm(t *testing.T) {
	ctx, b := visit(t, &cluster{name: "train-a"})
	do(t, ctx, chromedp.Navigate(b.url+"/what-if"), chromedp.SetValue(chromedp.ID("manifests"), "root: {}"))
	click(t, ctx, "form button")
	until(t, ctx, `document.querySelector("section h2")?.innerText === "Jobs in the form"`)
}

func TestEachActionIsOfferedAndConfirmedInThePage(t *testing.T) {
	c := &cluster{name: "train-a"}
	ctx, b := visit(t, c)
	for path, wants := range map[string][]string{"/jobs/research/train": {Pause}, "/queues/q": {Resume, Drain}} {
		for _, want := range wants {
			do(t, ctx, chromedp.Navigate(b.url+path))
			click(t, ctx, `a[href^="/act?do=`+want+`&"]`)
			if c.acted.Load() != nil {
				t.Errorf("%s acts without confirmation", want)
			}
			click(t, ctx, "form button")
			until(t, ctx, `document.querySelector("p[role=status]")?.innerText === "train-a done"`)
			if acted := c.acted.Swap(nil); acted == nil || acted.Do != want {
				t.Errorf("%s did %+v", want, acted)
			}
		}
	}
	for _, a := range []Action{{Do: Unpause, Namespace: "research", Unit: "train"}, {Do: Stop, Queue: "q"}, {Do: Priority, Namespace: "research", Unit: "train", Priority: "-7"}} {
		do(t, ctx, chromedp.Navigate(b.url+a.Path()))
		if a.Priority != "" {
			do(t, ctx, chromedp.SetValue(chromedp.CSS("input[name=priority]"), a.Priority))
		}
		click(t, ctx, "form button")
		until(t, ctx, `document.querySelector("p[role=status]")?.innerText === "train-a done"`)
		if acted := c.acted.Swap(nil); acted == nil || *acted != a {
			t.Errorf("%+v did %+v", a, acted)
		}
	}
}

func TestAHiddenPageIsNotFollowed(t *testing.T) {
	ctx, _ := visit(t, &cluster{name: "train-a"})
	hide := func(hidden bool) {
		do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true});
			document.dispatchEvent(new Event("visibilitychange"))`, hidden)))
	}
	until(t, ctx, `document.getElementById("connection").innerText === "Live"`)
	hide(true)
	until(t, ctx, `source === undefined && document.getElementById("connection").innerText === ""`)
	hide(false)
	until(t, ctx, `document.getElementById("connection").innerText === "Live"`)
}

func TestHostileNamesBreakNoPage(t *testing.T) {
	for _, name := range hostile {
		ctx, b := visit(t, &cluster{name: name})
		for _, path := range pages {
			do(t, ctx, chromedp.Navigate(b.url+path))
			if broken := evaluate[bool](t, ctx, `document.documentElement.scrollWidth > innerWidth || !document.querySelector("footer") || document.scripts.length !== 1`); broken {
				t.Errorf("%q breaks %s", name, path)
			}
		}
	}
}

// contrast returns the texts whose colour is too close to their background, by the rules of WCAG 2.2 AA.
const contrast = `(() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => rgb(c).slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c).length === 3) return c; } return "rgb(255, 255, 255)"; };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.tagName === "SCRIPT" || e.closest("svg")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(e.tagName + "." + e.className + ": " + walker.currentNode.data.trim());
  }
  return found;
})()`

func TestThePagesAreForEverybody(t *testing.T) {
	ctx, b := visit(t, &cluster{name: "train-a"})
	for _, path := range pages {
		do(t, ctx, chromedp.Navigate(b.url+path))
		for _, scheme := range []string{"light", "dark"} {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			require.NoError(t, err)
			if found := evaluate[[]string](t, ctx, contrast); len(found) > 0 {
				t.Errorf("%s, %s: too little contrast: %q", path, scheme, found)
			}
		}
		for _, width := range []int64{360, 1280} {
			do(t, ctx, chromedp.EmulateViewport(width, 800))
			if wide := evaluate[bool](t, ctx, `document.documentElement.scrollWidth > innerWidth`); wide {
				t.Errorf("%s: with %d pixels, the page scrolls to the side", path, width)
			}
		}
		expectNames(t, ctx, path)
	}
	do(t, ctx, chromedp.Navigate(b.url+"/"), chromedp.KeyEvent("\t"))
	if focus := evaluate[string](t, ctx, `document.activeElement.innerText`); focus != "Skip to the content" {
		t.Errorf("the first thing that the keyboard reaches is %q", focus)
	}
}

// expectNames checks that a screen reader can name every control and finds the landmarks.
func expectNames(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := fmt.Sprint(n.Role.Value)
		roles[role]++
		if slices.Contains([]string{`"link"`, `"button"`, `"textbox"`, `"checkbox"`, `"table"`, `"navigation"`, `"image"`}, role) && (n.Name == nil || fmt.Sprint(n.Name.Value) == `""`) {
			t.Errorf("%s: a %s has no name", path, role)
		}
	}
	for _, once := range []string{`"main"`, `"navigation"`, `"banner"`, `"contentinfo"`, `"status"`} {
		if roles[once] != 1 {
			t.Errorf("%s: %d times %s, of %v", path, roles[once], once, roles)
		}
	}
}
