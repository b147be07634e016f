/** Who is signed in and which collection is open. The key lives as long as the tab. */

const KEY = "geo.key";
const COLLECTION = "geo.collection";

export const session = {
  key: sessionStorage.getItem(KEY) ?? "",
  collections: [],
  collectionId: sessionStorage.getItem(COLLECTION) ?? "",
};

export function signIn(key) {
  session.key = key;
  sessionStorage.setItem(KEY, key);
}

export function forget() {
  session.key = "";
  session.collections = [];
  session.collectionId = "";
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(COLLECTION);
}

export function chooseCollection(id) {
  session.collectionId = id;
  sessionStorage.setItem(COLLECTION, id);
}

export function collection() {
  return session.collections.find((c) => c.id === session.collectionId) ?? null;
}

/** Take a fresh list; keeps the open collection if it is still there, else opens the first. */
export function setCollections(list) {
  session.collections = list;
  if (!collection()) chooseCollection(list[0]?.id ?? "");
}
