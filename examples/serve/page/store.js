// Conversations in the browser's own database, a record each, so that tabs that write different ones never meet. Where
// two tabs have written the same one, the later writer's is kept beside the other's as a copy: nothing is lost. Records
// that cannot be read are put apart, in a database of their own.
'use strict';

const kept = (() => {
  const channel = 'BroadcastChannel' in window ? new BroadcastChannel('intaglio.chats') : null;
  let base = null, aside = null, changed = () => {};
  const done = request => new Promise((good, bad) => {
    request.onsuccess = () => good(request.result);
    request.onerror = () => bad(request.error);
  });
  const opened = (name, make) => {
    const asked = indexedDB.open(name, 1);
    asked.onupgradeneeded = () => make(asked.result);
    return done(asked);
  };
  const records = mode => base.transaction('chats', mode).objectStore('chats');
  const apart = mode => aside.transaction('records', mode).objectStore('records');

  const list_of = (each, what) => Array.isArray(each) && each.every(what), text = each => typeof each === 'string';
  const sane_message = each => each && ['user', 'assistant'].includes(each.role) && text(each.content) &&
      text(each.model || '') && list_of(each.files || [], file => text(file?.name) && text(file.text)) &&
      list_of(each.tool_calls || [], call => text(call?.function?.name) && text(call.function.arguments)) &&
      list_of(each.results || [], text);
  const sane_branch = each =>
      Number.isInteger(each?.shown) && list_of(each.lists, list => list === null || list_of(list, sane_message));
  const sane = each => text(each?.id) && text(each.title) && text(each.system || '') && text(each.tools || '') &&
      text(each.model || '') && list_of(each.messages, sane_message) &&
      list_of(Object.values(each.branches || {}), sane_branch);
  let left = [];  // for which there is no room there
  async function put_apart(broken) {
    left = [...broken];
    try {
      aside = await opened('intaglio.apart', made => made.createObjectStore('records', {autoIncrement: true}));
      for (const each of broken) {
        await done(apart('readwrite').add(each));  // there before it is gone here
        await done(records('readwrite').delete(each.id));
        left.shift();
      }
      return await done(apart('readonly').count());
    } catch { return left.length; }
  }
  if (channel)
    channel.onmessage = async ({data}) => changed(data, base ? await done(records('readonly').get(data)) : undefined);

  return {
    sane,
    /// All that is kept, the latest first, and how many records are put apart. Without a database they are kept until
    /// the page goes.
    async open(on_change) {
      changed = on_change;
      try {
        base = await opened('intaglio', made => made.createObjectStore('chats', {keyPath: 'id'}));
        const all = await done(records('readonly').getAll());
        return {
          list: all.filter(sane).sort((a, b) => (b.touched || 0) - (a.touched || 0)),
          apart: await put_apart(all.filter(each => !sane(each)))
        };
      } catch (problem) {
        base = null;
        return {list: [], apart: 0, problem};
      }
    },
    apart: async () => [...(aside ? await done(apart('readonly').getAll()) : []), ...left],
    forget_apart: async () => aside && done(apart('readwrite').clear()),
    /// Another writer's record, if there was one, is given back: the conversation then has another id.
    async put(chat) {
      if (!base) return null;
      const to = records('readwrite'), there = await done(to.get(chat.id)),
            met = !!there && (there.revision || 0) !== (chat.revision || 0);
      if (met) Object.assign(chat, {id: chat.id + '+' + Date.now().toString(36), title: chat.title + ' (copy)'});
      chat.revision = (chat.revision || 0) + 1;
      await done(to.put(JSON.parse(JSON.stringify(chat))));
      channel?.postMessage(chat.id);
      return met ? there : null;
    },
    async remove(id) {
      if (!base) return;
      await done(records('readwrite').delete(id));
      channel?.postMessage(id);
    },
    /// Runs the work while no other tab answers in this conversation. @return false: another one does
    async alone(id, work) {
      if (!navigator.locks) {
        await work();
        return true;
      }  // pages that are not from this machine have none without TLS
      return navigator.locks.request('intaglio.' + id, {ifAvailable: true}, async lock => {
        if (!lock) return false;
        await work();
        return true;
      });
    },
  };
})();
