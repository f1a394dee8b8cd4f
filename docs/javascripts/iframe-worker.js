// Search in pages opened from the disk: browsers start no worker there, so its script runs in a hidden frame.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.ready = false;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        if (this.onmessage) this.onmessage(event);
        this.dispatchEvent(event);
      };
      inner.importScripts = (...addresses) => Promise.all(addresses.map((one) => this.load(one)));
      this.load(address).then(() => {
        this.ready = true;
        for (const data of this.waiting.splice(0)) this.postMessage(data);
      });
    }

    load(address) {
      const inner = this.frame.contentDocument;
      return new Promise((resolve, reject) => {
        const script = inner.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        inner.head.append(script);
      });
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() { this.frame.remove(); }
  };
}
