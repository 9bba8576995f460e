//! `block`: everything about one allocation.

use memviz_layout::{BlockId, BlockInfo, NEVER};
use memviz_trace::{Action, Buffer, NO_STREAM, StackId, Trace};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::{Api, names};
use crate::answer::{Answer, Refusal};
use crate::clip;
use crate::query::{Query, wrong};
use crate::store::Loaded;

/// Arrays of one block that are listed.
const MOST_ARRAYS: usize = 200;
/// Events after a free that may say who used the block: MLX tells it late at times.
const LOOK_AHEAD: usize = 64;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["r", "id"], &[])?;
    let loaded = api.asked(&query)?;
    let (layout, trace) = (loaded.layout(), loaded.trace());
    let id = query.whole("id")?;
    let found = BlockId::try_from(id).ok().and_then(|id| Some((id, layout.block(id)?, layout.buffer(trace, id)?)));
    let Some((id, info, buffer)) = found else {
        return Err(wrong("id", &id.to_string(), &format!("a block of the recording, below {}", layout.blocks())));
    };
    let mut block = about(&loaded, id, &info, &buffer);
    block["arrays"] = if loaded.facts().has_arrays { json!(arrays(&loaded, &info, &buffer)) } else { Value::Null };
    Ok(Answer::json(&block))
}

fn about(loaded: &Loaded, id: BlockId, info: &BlockInfo, buffer: &Buffer) -> Value {
    let (layout, trace) = (loaded.layout(), loaded.trace());
    let (what, tenants) = (trace.what(buffer.what), layout.tenants(trace, id));
    let from_start = info.alloc_event.is_none();
    let allocation = info.alloc_event.and_then(|at| trace.events.get(at));
    let free = info.free_event.and_then(|at| trace.events.get(at));
    let born = layout.place(trace, info.born);
    let end = if info.died == NEVER { layout.place(trace, layout.events()) } else { layout.place(trace, info.died) };
    let born_nanos = if from_start { buffer.alloc_nanos.min(born.nanos) } else { born.nanos };
    let (step, annotation) = context(trace, info, buffer);
    json!({
        "id": id,
        "size": clip::number(buffer.size),
        "asked": clip::number(buffer.requested()),
        "address": format!("{:#x}", buffer.addr),
        "device": names::device(buffer.device),
        "stream": (buffer.stream != NO_STREAM).then_some(buffer.stream),
        "thread": names::thread(trace, buffer.thread),
        "primitive": clip::text(trace.strings.get(what.primitive)),
        "shape": what.shape.as_ref().map(|axes| axes.iter().take(clip::MOST_CHARS).copied().collect::<Vec<i32>>()),
        "dtype": clip::text(trace.strings.get(what.dtype)),
        "annotation": annotation,
        "step": step.map(clip::number),
        "is_temporary": what.is_temporary,
        "born": { "event": info.born, "nanos": clip::number(born_nanos) },
        "died": (info.died != NEVER).then(|| json!({ "event": info.died, "nanos": clip::number(end.nanos) })),
        "freed_how": free.map_or("", |event| freed_how(event.action, event.is_move())),
        "lifetime_nanos": clip::number(end.nanos.saturating_sub(born_nanos)),
        "from_cache": allocation.is_some_and(|event| event.action == Action::AllocReuse),
        "address_used": clip::number(tenants.count),
        "previous_tenant": tenants.previous,
        "next_tenant": tenants.next,
        "built": names::stack(loaded, buffer.built),
        "evaluated": names::stack(loaded, buffer.triggered),
        "freed": names::stack(loaded, free.map_or(StackId(0), |event| event.triggered)),
    })
}

fn freed_how(action: Action, is_move: bool) -> &'static str {
    match action {
        _ if is_move => "moved to another address",
        Action::FreeActiveToCache => "to the cache",
        Action::FreeActiveToOs => "to the system",
        Action::Release => "wrapper released",
        _ => "",
    }
}

/// Step and annotations that were open when it was allocated.
fn context(trace: &Trace, info: &BlockInfo, buffer: &Buffer) -> (Option<u64>, String) {
    let Some(position) = info.alloc_event else { return (None, String::new()) };
    let mut cursor = trace.mark_cursor();
    cursor.advance_to(trace.first_index.saturating_add(position as u64));
    let open: Vec<_> =
        cursor.annotations(buffer.thread).iter().map(|name| clip::text(trace.strings.get(*name))).collect();
    (cursor.step(), clip::owned(open.join("/")))
}

/// Arrays that used the block, in order of their first use.
fn arrays(loaded: &Loaded, info: &BlockInfo, buffer: &Buffer) -> Vec<Value> {
    let (trace, lines) = (loaded.trace(), loaded.lines());
    let users = users(trace, info, buffer);
    let mut facts: FxHashMap<u32, [Option<usize>; 2]> = users.iter().map(|id| (*id, [None; 2])).collect();
    for (position, event) in trace.events.iter().enumerate().filter(|(_, event)| event.action.is_array()) {
        let Some([created, died]) = facts.get_mut(&event.slack) else { continue };
        match event.action {
            Action::ArrayCreated => *created = Some(position),
            Action::ArrayDied => *died = Some(position),
            _ => {}
        }
    }
    let describe = |id: &u32| {
        let [created, died] = facts.get(id).copied().unwrap_or_default();
        let event = created.and_then(|at| trace.events.get(at));
        let line = event.and_then(|event| lines.line_of(event.built));
        let moment = |at: usize| clip::count(at + 1);
        json!({
            "what": event.map_or_else(|| "array from before the recording".to_owned(), |event| what(trace, event.what)),
            "built": line.map_or_else(String::new, |line| names::frame(trace, trace.stacks.frame(line))),
            "born_event": created.map_or(0, moment),
            "died_event": died.map(moment),
        })
    };
    users.iter().map(describe).collect()
}

fn users(trace: &Trace, info: &BlockInfo, buffer: &Buffer) -> Vec<u32> {
    let from = info.alloc_event.unwrap_or(0);
    let to = info.free_event.unwrap_or(trace.events.len()).saturating_add(LOOK_AHEAD).min(trace.events.len());
    let mut users = Vec::new();
    for (position, event) in trace.events.iter().enumerate().take(to).skip(from) {
        let is_after = info.free_event.is_some_and(|free| position > free);
        if is_after && event.addr == buffer.addr && event.action.is_alloc() {
            break;
        }
        let is_use = match event.action {
            Action::ArrayTookBuffer => true,
            Action::ArraySharesBuffer => !is_after,
            _ => false,
        };
        if is_use && event.addr == buffer.addr && event.slack != 0 && !users.contains(&event.slack) {
            users.push(event.slack);
            if users.len() == MOST_ARRAYS {
                break;
            }
        }
    }
    users
}

/// "Add float32 [2, 3]".
fn what(trace: &Trace, id: memviz_trace::WhatId) -> String {
    let what = trace.what(id);
    let shape = what.shape.as_ref().map(|axes| format!(" {:?}", &axes[..axes.len().min(MOST_ARRAYS)]));
    let (primitive, dtype) = (clip::text(trace.strings.get(what.primitive)), clip::text(trace.strings.get(what.dtype)));
    let name = if primitive.is_empty() { "leaf".into() } else { primitive };
    clip::owned(format!("{name} {dtype}{}", shape.unwrap_or_default()).trim_end().to_owned())
}
