// The service worker, which shows questions that wait, even while no page is open, and leads to them. It answers no
// requests of pages.
self.addEventListener("install", () => self.skipWaiting()); // it keeps no state, so it can replace an older worker

self.addEventListener("push", (event) => {
  const { title, body, path, tag, again } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, renotify: again, data: { path } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(new URL(event.notification.data.path, self.location.origin).href));
});

/** Show a page in a tab where it is open, or else in a new tab, since another tab may hold an unsent message. */
async function show(address) {
  const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = tabs.find((tab) => tab.url.split("#")[0] === address);
  return open ? open.focus() : self.clients.openWindow(address);
}
