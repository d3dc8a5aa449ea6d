// The service worker: shows questions that wait, also while no page is open, and leads to them. It answers no requests
// of pages.
self.addEventListener("install", () => self.skipWaiting()); // it holds nothing that an older one could miss

self.addEventListener("push", (event) => {
  const { title, body, path, tag, again } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, renotify: again, data: { path } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(new URL(event.notification.data.path, self.location.origin).href));
});

/** In a tab where it is open already, or in a new one: another tab may hold a message that is being written. */
async function show(address) {
  const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = tabs.find((tab) => tab.url.split("#")[0] === address);
  return open ? open.focus() : self.clients.openWindow(address);
}
