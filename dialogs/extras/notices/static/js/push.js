// The switch "Notify this browser" in the settings. The form around it sends the browser's subscription to the server.
const form = document.getElementById("push-form");
const toggle = document.getElementById("push-switch");
const problems = document.getElementById("push-problems");

function say(problem) {
  for (const words of problems.children) words.hidden = words.dataset.problem !== problem;
}

/** Limit the wait for a subscription: without a network, Chromium waits for its push service for ever. */
function soon(answer) {
  return Promise.race([answer, new Promise((_, refuse) => setTimeout(refuse, 20_000, new Error("no answer")))]);
}

async function subscribe() {
  if ((await Notification.requestPermission()) !== "granted") return "denied";
  await navigator.serviceWorker.register(form.dataset.worker);
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe(); // it may be for another key, or for somebody else
  const found = await soon(pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.key }));
  const { endpoint, keys } = found.toJSON();
  form.elements.address.value = endpoint;
  form.elements.key.value = keys.p256dh;
  form.elements.secret.value = keys.auth;
  form.submit();
  return "";
}

async function unsubscribe() {
  const worker = await navigator.serviceWorker.getRegistration();
  await (await worker?.pushManager.getSubscription())?.unsubscribe();
  form.action = form.dataset.remove;
  form.submit();
}

async function isLost() {
  const worker = await navigator.serviceWorker.getRegistration();
  return !(await worker?.pushManager.getSubscription());
}

toggle.addEventListener("change", async () => {
  if (!toggle.checked && form.dataset.remove) return unsubscribe();
  if (!toggle.checked) return say("");
  toggle.disabled = true;
  say("");
  const problem = await subscribe().catch((error) => (error.name === "NotAllowedError" ? "denied" : "failed"));
  if (!problem) return;
  toggle.checked = toggle.disabled = false;
  say(problem);
});

if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) say("missing");
else if (Notification.permission === "denied") say("denied");
else {
  toggle.disabled = false;
  if (toggle.checked && (await isLost())) {
    toggle.checked = false;
    say("lost");
  }
}
