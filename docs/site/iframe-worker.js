// The search runs in a worker, which browsers do not start for a file: URL. Then a frame takes its
// place. The name tells the theme's plugin `offline` not to fetch one from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const scope = frame.contentWindow;
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = scope.document.createElement("script");
      script.src = url;
      const ready = new Promise((resolve) => (script.onload = resolve));
      this.postMessage = (data) =>
        ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
      scope.document.body.append(script);
    }
  };
}
