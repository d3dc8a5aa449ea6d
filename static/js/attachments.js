// Files of a message that is being written: chosen, pasted or dropped, shown small, and sent with the form.
import { announce } from "./page.js";
import { tr } from "./words.js";

const SMALLER_PX = 2000; // the longer side of a photograph that was too large for the server, once it is scaled down
const JPEG_QUALITY = 0.85;
const IMAGES = /^(\x89PNG|GIF8|\xff\xd8|RIFF[^]{4}WEBP)/; // first bytes, by which the server knows images as well
const OFFICE = /\.(docx|xlsx|pptx)$/i; // only the name is checked here; the server looks into the archive
const NO_TEXT = /[\x00-\x08\x0e-\x1a\x1c-\x1f]/; // control characters that no text has

/** Set up a form. `refuse` is called with a sentence for people, `changed` with the number of files. */
export function startAttachments(form, { refuse, changed }) {
  const input = form.elements.namedItem("attachments");
  const list = form.querySelector(".attached");
  const bar = form.querySelector(".attached-progress");
  const row = form.querySelector("template").content;
  const [mostBytes, mostFiles] = [Number(input.dataset.bytes), Number(input.dataset.files)];
  let files = [];
  let sent = [];

  input.addEventListener("change", () => add([...input.files]));
  const camera = form.querySelector("#camera");
  form.querySelector(".camera")?.addEventListener("click", () => camera.click());
  camera?.addEventListener("change", () => {
    add([...camera.files]);
    camera.value = ""; // otherwise choosing the same photograph again would be no change
  });
  form.addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files];
    // A word processor also copies a picture of the text. Only the text is pasted.
    if (!pasted.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(pasted);
  });
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    form.classList.toggle("dropping", !input.disabled);
  });
  for (const kind of ["dragleave", "drop", "dragend"])
    document.addEventListener(kind, (event) => {
      if (kind === "drop" || !event.relatedTarget) form.classList.remove("dropping");
    });
  document.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });

  form.addEventListener("htmx:xhr:progress", (event) => {
    if (!event.detail.lengthComputable || !event.detail.total) return;
    bar.hidden = !sent.length;
    bar.value = event.detail.loaded / event.detail.total;
  });

  async function add(added) {
    if (input.disabled) return;
    const taken = [];
    const refused = [];
    const refuseOne = ({ name }, reason) => {
      refused.push(tr("“{name}” was not attached. {reason}", { name, reason }));
      refuse(refused.join(" "));
    };
    for (const file of added) {
      const fitting = file.size > mostBytes ? await smaller(file) : file;
      if (fitting.size > mostBytes) refuseOne(file, input.dataset.tooLong);
      else if (!file.size) refuseOne(file, input.dataset.empty);
      else if (files.length >= mostFiles) refuseOne(file, input.dataset.tooMany);
      else {
        files.push(fitting);
        taken.push(fitting);
      }
    }
    show();
    for (const file of taken) {
      const kind = await kindOf(file);
      const reason = !kind ? input.dataset.otherKind : kind === "image" && isBlind(form) ? input.dataset.blind : "";
      if (!reason) announce(tr("Attached {name}", { name: file.name }));
      else if (files.includes(file) && !sent.includes(file)) {
        files = files.filter((other) => other !== file);
        show();
        refuseOne(file, reason);
      }
    }
  }

  function show() {
    const chosen = new DataTransfer();
    for (const file of files) chosen.items.add(file);
    input.files = chosen.files;
    list.replaceChildren(...files.map(item));
    list.hidden = !files.length;
    changed(files.length);
  }

  function item(file, place) {
    const shown = row.cloneNode(true).firstElementChild;
    const [name, size] = shown.querySelectorAll("span");
    const remove = shown.querySelector("button");
    name.textContent = file.name;
    size.textContent = words(file.size);
    remove.setAttribute("aria-label", tr("Remove {name}", { name: file.name }));
    remove.addEventListener("click", () => {
      files = files.filter((other) => other !== file);
      show();
      (list.querySelectorAll("button")[Math.min(place, files.length - 1)] ?? input).focus();
    });
    draw(file, shown.querySelector("canvas"));
    return shown;
  }

  return {
    get any() {
      return files.length > 0;
    },
    sending() {
      sent = files;
    },
    /** Remove the files that the server has accepted. Files that were added meanwhile stay. */
    accepted() {
      files = files.filter((file) => !sent.includes(file));
      this.ended();
      show();
    },
    ended() {
      sent = [];
      bar.hidden = true;
      bar.value = 0;
    },
    allow(may) {
      input.disabled = !may;
    },
  };
}

function words(bytes) {
  return bytes < 1000
    ? tr("{number} bytes", { number: bytes })
    : bytes < 1e6
      ? `${Math.round(bytes / 1000)} kB`
      : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Return "image", "document" or "text", or an empty text for a file that the server would refuse. */
async function kindOf(file) {
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const begin = String.fromCharCode(...bytes.subarray(0, 12));
    if (IMAGES.test(begin)) return "image";
    if (begin.startsWith("%PDF-") || (begin.startsWith("PK\x03\x04") && OFFICE.test(file.name))) return "document";
    return NO_TEXT.test(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) ? "" : "text";
  } catch {
    return ""; // a folder, or a text that is not UTF-8
  }
}

/** Return whether the dialog's model, or the one chosen for a new dialog, certainly sees no images. */
function isBlind(form) {
  const model =
    form.querySelector("[name='model']:checked:not([value=''])") ?? form.querySelector("[name='agent']:checked");
  return Boolean((model?.closest(".option") ?? form.querySelector("#model-button"))?.matches("[data-blind]"));
}

/** Draw the middle of a picture as a small square. The canvas of any other file is hidden. */
async function draw(file, canvas) {
  const picture = await createImageBitmap(file).catch(() => null);
  canvas.hidden = !picture;
  if (!picture) return;
  const side = Math.min(picture.width, picture.height);
  canvas
    .getContext("2d")
    .drawImage(
      picture,
      (picture.width - side) / 2,
      (picture.height - side) / 2,
      side,
      side,
      0,
      0,
      canvas.width,
      canvas.height,
    );
  picture.close();
}

/** Return a photograph scaled down as JPEG; return any other file unchanged. */
async function smaller(file) {
  const picture = await createImageBitmap(file).catch(() => null);
  if (!picture) return file;
  const scale = Math.min(1, SMALLER_PX / Math.max(picture.width, picture.height));
  const canvas = new OffscreenCanvas(Math.round(picture.width * scale), Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  const made = await canvas.convertToBlob({ type: "image/jpeg", quality: JPEG_QUALITY });
  return new File([made], file.name.replace(/\.\w+$/, "") + ".jpg", { type: made.type });
}
